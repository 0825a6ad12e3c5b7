import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { flipped, makeJournal, SHARDS, silentWith } from './damaged-files.ts';

/** A database that was not closed has its newest part in its write-ahead log. */
const OF_KILLED = ['.seg', '.db', '.db-wal', '.note'];

test.each([
  ['any byte', 'closed', { end: '.seg' }],
  ['any byte', 'closed', { end: '.note' }],
  ['any byte in use', 'closed', { end: '.db', all: false }],
  [`one byte in ${SHARDS}, in use or not,`, 'closed', { end: '.db', step: SHARDS }],
  ...OF_KILLED.map((end) => [`one byte in ${SHARDS}`, 'killed', { end, step: SHARDS }] as const),
] as const)(
  'fault 48: a flipped bit in %s of a %s journal, %o, loses nothing without a word',
  async (_which, state, flips) => {
    const { [state]: files } = makeJournal(join(await temporaryFolder(), 'journal'));
    expect(await silentWith(flipped(files, flips))).toEqual([]);
  },
);

test('those are all files of a killed journal', async () => {
  const { killed } = makeJournal(join(await temporaryFolder(), 'journal'));
  expect([...killed.keys()].filter((name) => !OF_KILLED.some((end) => name.endsWith(end)))).toEqual([]);
});
