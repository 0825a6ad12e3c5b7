import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';

const WRITTEN = /\.(?:ts|m?js|html|css|md|ya?ml|sh|service|txt)$/;
const HISTORY = '.github/decisions/';
const TABLE = '.github/CONTRIBUTING.md';

/** Where a word has another meaning than the one that is not used. */
const ALLOWED =
  /\b(?:dead letters?|letters (?:digits|and digits)|(?:lower case|small) letters|a letter first|letters stay letters|without letters)\b/g;

/** The words in code spans of the column "not" of CONTRIBUTING's table. */
const unused = Array.from(
  readFileSync(join(ROOT, TABLE), 'utf8').matchAll(/^\|[^|]+\|([^|]+)\|$/gm),
  ([, cell = '']) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, word = '']) => word),
).flat();

test('no name, comment or text has a word that CONTRIBUTING says is not used', () => {
  expect(unused.length).toBeGreaterThan(20);
  const search = new RegExp(`\\b(?:${unused.join('|')})\\b`, 'g');
  const found = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => WRITTEN.test(file) && file !== TABLE && !file.startsWith(HISTORY))
    .flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          Array.from(wordsOf(line).matchAll(search), ([word]) => `${file}:${index + 1}: ${word}`),
        ),
    );
  expect(found).toEqual([]);
});

/** A line as words: `underWay`, `UNDER_WAY` and `under-way` are all `under way`. */
function wordsOf(line: string): string {
  return line
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .toLowerCase()
    .replaceAll(ALLOWED, '');
}
