import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { SOURCE } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';

/** A Node older than the program needs, from the PATH or the usual places. */
function findOldNode(): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/local/bin'];
  for (const folder of new Set(folders)) {
    const { stdout, status } = spawnSync(join(folder, 'node'), ['--version'], { encoding: 'utf8' });
    if (status === 0 && Number.parseInt(stdout.slice(1), 10) < 24) return join(folder, 'node');
  }
  return null;
}

const oldNode = findOldNode();
const lack = oldNode === null ? 'needs a Node older than 24' : null;

test.skipIf(lack !== null)(`with an older Node, one line says so${skipped(lack)}`, async () => {
  const main = join(await temporaryFolder(), 'main.mjs');
  // What the build makes of it, and nothing beside it: the check must come before any import.
  writeFileSync(main, stripTypeScriptTypes(readFileSync(SOURCE, 'utf8')));
  const { status, stdout, stderr } = spawnSync(oldNode ?? '', [main, 'serve'], { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^millrace: needs Node 24 or newer; this is \d+\.\d+\.\d+ \(.+\)\n$/);
});

test('nothing but types is imported before the check', () => {
  const imports = readFileSync(SOURCE, 'utf8').match(/^import .*/gm) ?? [];
  expect(imports.filter((line) => !line.startsWith('import type '))).toEqual([]);
});
