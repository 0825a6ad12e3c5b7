import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { flipped, makeJournal, SHARDS, silentWith } from './damaged-files.ts';

for (const end of ['.seg', '.note']) {
  test(`fault 48: a flipped bit in any byte of a closed journal's ${end} loses nothing without a word`, async () => {
    const { closed } = makeJournal(join(await temporaryFolder(), 'journal'));
    expect(await silentWith(flipped(closed, { end }))).toEqual([]);
  });
}

test("fault 48: a flipped bit in any byte in use of a closed journal's database loses nothing without a word", async () => {
  const { closed } = makeJournal(join(await temporaryFolder(), 'journal'));
  expect(await silentWith(flipped(closed, { end: '.db', all: false }))).toEqual([]);
});

test(`fault 48: the same of one byte in ${SHARDS}, in use or not`, async () => {
  const { closed } = makeJournal(join(await temporaryFolder(), 'journal'));
  expect(await silentWith(flipped(closed, { end: '.db', step: SHARDS }))).toEqual([]);
});

test('fault 48: the same of a killed journal, and its write-ahead log', async () => {
  const { killed } = makeJournal(join(await temporaryFolder(), 'journal'));
  expect(await silentWith(flipped(killed, { step: SHARDS }))).toEqual([]);
}, 1_800_000);
