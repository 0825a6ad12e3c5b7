import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { runCount } from '../support/run-count.ts';
import { flipped, makeJournal, SHARDS, silentWith } from './damaged-files.ts';

const IS_LONG = runCount(1) > 1;

// In a file of its own, beside the other half in damaged-journal.test.ts: so both run at once.
test("fault 48: a flipped bit in each second byte of a closed journal's database loses nothing without a word", async () => {
  const { closed } = makeJournal(join(await temporaryFolder(), 'journal'));
  const half = IS_LONG ? { step: SHARDS } : { all: false, step: 2, from: 1 };
  expect(await silentWith(flipped(closed, { end: '.db', ...half }))).toEqual([]);
});
