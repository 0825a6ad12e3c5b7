import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { appendLines, readJsonLines } from '../../src/lib/json-lines.ts';
import { temporaryFolder } from '../support/folders.ts';

const LINES = ['{"made":"up 1"}', '{"made":"up 2"}', '{"made":"up 3"}'];
const NEW = '{"made":"up 4"}';
const SECTOR = 512;
const long = `{"made":"${'u'.repeat(1400)}p"}`;
const text = (...lines: string[]): string => lines.map((line) => `${line}\n`).join('');

test.each<[what: string, before: string | null, kept: string[]]>([
  ['no file', null, []],
  ['an empty file', '', []],
  ['whole lines', text(...LINES), LINES],
  ['a last line that a crash has cut short', text(...LINES.slice(0, 2)) + '{"made":"u', LINES.slice(0, 2)],
  ['nothing but such a line', '{"ma', []],
  ['a last line that an editor has saved without its break', text(...LINES).trimEnd(), LINES],
  [
    'a last line of which a sector never came to the disk',
    `${text(LINES[0] ?? '', long).slice(0, SECTOR)}${'\0'.repeat(SECTOR)}`,
    LINES.slice(0, 1),
  ],
  ['the same, with its end', holed(text(LINES[0] ?? '', long), SECTOR, 2 * SECTOR), LINES.slice(0, 1)],
])('%s: what counts is read, and stays when a line is added', async (_what, before, kept) => {
  const path = join(await temporaryFolder(), 'made-up.jsonl');
  if (before !== null) writeFileSync(path, before);
  expect(readJsonLines(path)).toEqual(kept.map((line) => JSON.parse(line) as object));
  expect(existsSync(path)).toBe(before !== null);
  await appendLines(path, [NEW]);
  expect(readFileSync(path, 'utf8')).toBe(text(...kept, NEW));
});

test.each([
  ['a damaged line in the middle', text(LINES[0] ?? '', '{"made":"u', LINES[2] ?? ''), 2],
  ['a damaged last line', text(LINES[0] ?? '', '{"made":"u'), 2],
  ['a sector of zeros before the last line', holed(text(long, NEW), SECTOR, 900), 1],
  ['a value that is no object', text('12', NEW), 1],
])('%s is named', async (_what, before, line) => {
  const path = join(await temporaryFolder(), 'made-up.jsonl');
  writeFileSync(path, before);
  expect(() => readJsonLines(path)).toThrow(`line ${line} is damaged`);
  await appendLines(path, [NEW]);
  expect(readFileSync(path, 'utf8')).toBe(before + text(NEW));
});

function holed(whole: string, from: number, to: number): string {
  return whole.slice(0, from) + '\0'.repeat(to - from) + whole.slice(to);
}
