import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openJournal } from '../../src/cli/operations.ts';
import { resolveConfig } from '../../src/config/load.ts';
import { FIRST_SEGMENT } from '../support/journal-files.ts';
import { Place, saying } from '../support/place.ts';
import { Receiver } from '../support/receiver.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';

const lack = lacksProgram('mkfifo');

/** What a start says: of a file of the journal that is not plain, that; of the owner's note, which is written again, what it holds. */
const REFUSED = [
  ...['journal.db', 'journal.db-wal', FIRST_SEGMENT].map((name) => [name, 1, `${name} is not a plain file`]),
  ...['owner.json', 'owner.json.tmp'].map((name) => [name, 2, 'is held by process ']),
] as [string, number, string][];
/** How long a start waits for the journal. */
const SHORT = { shutdown: { deadline: '1ms' } };

test.each(REFUSED)(
  'fault 30: a symbolic link in the place of %s is not followed',
  async (name, code, said) => {
    const place = await Place.make(SHORT);
    const target = place.at('elsewhere');
    writeFileSync(target, 'as it was');
    mkdirSync(place.at('journal'));
    symlinkSync(target, place.at('journal', name));
    if (name.startsWith('owner')) await place.start();
    expect(await place.run('serve')).toMatchObject(saying(code, said));
    expect(readFileSync(target, 'utf8')).toBe('as it was');
  },
);

test.skipIf(lack !== null).each(REFUSED)(
  `fault 30: a FIFO in the place of %s is not waited for${skipped(lack)}`,
  async (name, code, said) => {
    const place = await Place.make(SHORT);
    mkdirSync(place.at('journal'));
    execFileSync('mkfifo', [place.at('journal', name)]);
    if (name.startsWith('owner')) await place.start();
    expect(await place.run('serve')).toMatchObject(saying(code, said));
  },
);

test('a receiver waits for one that is stopping; a command that has the journal is no reason to stay down', async () => {
  const place = await Place.make();
  const first = await place.start();
  const second = new Receiver(place.config);
  await until('it waits', () => second.stderr.includes('for the journal'));
  await first.kill('SIGTERM');
  await second.listening();
  await second.kill('SIGTERM');

  place.write(SHORT);
  const holder = await openJournal((await resolveConfig({ file: place.config, env: {} })).config);
  expect(await place.run('serve')).toMatchObject(saying(1, 'is held by '));
  await holder.close();
});
