import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FIRST_SEGMENT } from '../support/journal-files.ts';
import { Place, saying } from '../support/place.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';

const lack = lacksProgram('mkfifo');

/** What a start says: of a file of the journal that is not plain, that; of the owner's note, which is written again, what it holds. */
const REFUSED = [
  ...['journal.db', 'journal.db-wal', FIRST_SEGMENT].map((name) => [name, `${name} is not a plain file`]),
  ...['owner.json', 'owner.json.tmp'].map((name) => [name, 'is held by process ']),
] as [string, string][];

test.each(REFUSED)('fault 30: a symbolic link in the place of %s is not followed', async (name, said) => {
  const place = await Place.make();
  const target = place.at('elsewhere');
  writeFileSync(target, 'as it was');
  mkdirSync(place.at('journal'));
  symlinkSync(target, place.at('journal', name));
  if (name.startsWith('owner')) await place.start();
  expect(await place.run('serve')).toMatchObject(saying(1, said));
  expect(readFileSync(target, 'utf8')).toBe('as it was');
});

test.skipIf(lack !== null).each(REFUSED)(
  `fault 30: a FIFO in the place of %s is not waited for${skipped(lack)}`,
  async (name, said) => {
    const place = await Place.make();
    mkdirSync(place.at('journal'));
    execFileSync('mkfifo', [place.at('journal', name)]);
    if (name.startsWith('owner')) await place.start();
    expect(await place.run('serve')).toMatchObject(saying(1, said));
  },
);
