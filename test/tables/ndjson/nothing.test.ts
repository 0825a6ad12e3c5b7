import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';

const NESTED = '{"result":{"meals":[{"id":"b"}]}}';

test.each<readonly [string, string | Buffer, readonly string[]]>([
  ['no byte', '', []],
  ['white space', '\n \n', []],
  ['nothing, compressed', gzipSync(''), []],
  ['nothing at the path', NESTED, ['--at', 'result.meal']],
])('a document of %s is an error, and the tables of before stay', async (_, text, args) => {
  const folder = await temporaryFolder();
  const file = join(folder, 'document.json');
  const out = join(folder, 'tables');
  const ndjson = (...more: readonly string[]) => millrace(['ndjson', file, '--table', 'meals', ...more]);
  writeFileSync(file, '{"meals":[{"id":"a"}]}');
  expect((await ndjson('--out', out)).code).toBe(0);
  const before = readFileSync(join(out, 'meals.ndjson'), 'utf8');
  writeFileSync(file, text);
  for (const place of [['--out', out], []]) {
    const ended = await ndjson(...place, ...args);
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(/is empty|has nothing/),
    ]);
  }
  expect(readFileSync(join(out, 'meals.ndjson'), 'utf8')).toBe(before);
});

test.each([
  ['document.json', '{"meals":[]}', []],
  ['document.json', '[]', []],
  ['document.json', '{"result":{"meals":[]}}', ['--at', 'result.meals']],
  ['lines.ndjson', '', []],
  ['lines.txt', '', ['--lines']],
])('%s of %j without a row is none', async (name, text, args) => {
  const file = join(await temporaryFolder(), name);
  writeFileSync(file, text);
  const ended = await millrace(['ndjson', file, '--table', 'meals', ...args]);
  expect([ended.code, ended.stdout]).toEqual([0, '']);
});
