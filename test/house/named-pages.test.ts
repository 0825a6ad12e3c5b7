import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';

/** A page or config of this project, as help texts, errors and comments name it; not a part of a URL or of another path. */
const NAMED = /(?<![\w./-])(?:docs|deploy|config\/examples|\.github)\/[\w./-]+\.(?:md|ya?ml)\b/g;
const FOLDERS = ['src', 'config', 'deploy', 'test'];

test('every page that a text of code, configs or deployment names is there', () => {
  const files = execFileSync('git', ['ls-files', ...FOLDERS], { cwd: ROOT, encoding: 'utf8' }).split('\n');
  const named = files
    .filter((file) => /\.(?:ts|js|as|ya?ml|json|tpl|txt|sh|html)$/.test(file))
    .flatMap((file) =>
      Array.from(readFileSync(join(ROOT, file), 'utf8').matchAll(NAMED), ([page]) => ({ file, page })),
    );
  expect(new Set(named.map(({ page }) => page)).size).toBeGreaterThan(5);
  expect(named.filter(({ page }) => !existsSync(join(ROOT, page)))).toEqual([]);
});
