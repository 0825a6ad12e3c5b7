import { readdirSync, readFileSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { eventOf, userId } from '../privacy/erase/support.ts';
import { Place } from '../support/place.ts';
import { until } from '../support/until.ts';

const GONE = 7;
const STAYS = 8;

/** A receiver that was killed with unfinished files in `old`: so many events of each of two users. */
async function killedWith(events: number) {
  const place = await Place.make();
  const old = place.at('old');
  /** Writes the config again: the only sink is this one. */
  const configure = (name: string, sink = 'archive'): void =>
    place.write({ sinks: { [sink]: { type: 'files', path: place.at(name) } } });
  configure('old');
  const receiver = await place.startProcess();
  for (let n = 0; n < events; n += 1) await receiver.send([eventOf(GONE, n), eventOf(STAYS, n)]);
  await receiver.drained();
  await receiver.kill('SIGKILL');
  expect(usersIn(old, '.part')).toHaveLength(2 * events);
  expect(usersIn(old, '.gz')).toEqual([]);
  return { place, old, configure };
}

const finished = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.gz'));

/** Whose the records are in the files of a folder that end so. */
function usersIn(folder: string, extension: '.part' | '.gz'): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(extension))
    .flatMap((name) => {
      const bytes = readFileSync(join(folder, name));
      const lines = (extension === '.gz' ? gunzipSync(bytes) : bytes).toString().trimEnd().split('\n');
      return lines.map((line) => (JSON.parse(line) as { user_id: string }).user_id);
    });
}

const times = (count: number, user: number): string[] => Array.from({ length: count }, () => userId(user));
const erase = (place: Place) => place.json('erase', userId(GONE), '--now');

/** Starts a receiver that finishes what lies in `old`, and stops it. */
async function finishedBy(place: Place, old: string, events: number): Promise<void> {
  const receiver = await place.startProcess();
  await until('the finished file', () => usersIn(old, '.gz').length === events);
  await until('no unfinished file', () => usersIn(old, '.part').length === 0);
  await receiver.stop();
  await place.ok('archive', 'verify', old);
}

test.each(['an earlier config', 'an earlier program, which noted an archive with its first finished file'])(
  'a file of %s that an erasure finds, or does not know of, comes back without the user',
  async (how) => {
    const { place, old, configure } = await killedWith(3);
    if (how !== 'an earlier config') rmSync(place.at('erasure', 'heads'), { recursive: true, force: true });
    configure('new');
    const erased = await erase(place);
    expect(erased).toMatchObject({ code: 0, left: [] });
    if (how === 'an earlier config') expect(erased.receipts[0].stores).toContain(old);
    configure('old');
    const receiver = await place.startProcess();
    await place.ok('flush');
    expect([usersIn(old, '.gz'), usersIn(old, '.part')]).toEqual([times(3, STAYS), []]);
    await receiver.stop();
    await place.ok('archive', 'verify', old);
  },
);

test.each(['archive', 'other'])(
  'a start finishes what an earlier config left unfinished, under its own archive; the sink is now called %s',
  async (sink) => {
    const { place, old, configure } = await killedWith(5);
    configure('new', sink);
    await finishedBy(place, old, 10);
    expect(finished(place.at('new'))).toEqual([]);
    const { code, sinks } = await place.json('reconcile');
    expect(code).toBe(0);
    expect(sinks).toContainEqual(expect.objectContaining({ sink: 'archive', delivered: 10, missing: 0 }));
    if (sink === 'archive') return;
    // What is missing of them is missing in reconcile.
    unlinkSync(join(old, finished(old)[0]!));
    const differences = [{ code: 'missing', sink: 'archive', count: 10 }];
    expect(await place.json('reconcile')).toMatchObject({ code: 4, differences });
  },
);

test('an earlier archive that is out of reach is named, the receiver starts, erase exits 3; it is finished when it is back', async () => {
  const { place, old, configure } = await killedWith(3);
  renameSync(old, place.at('elsewhere'));
  configure('new');
  const offline = await place.run('erase', userId(GONE), '--now', '--json');
  expect([offline.code, JSON.parse(offline.stdout)]).toMatchObject([3, { receipts: [] }]);
  expect(offline.stderr).toContain(old);
  const receiver = await place.startProcess();
  await until('a word in the log', () => receiver.stderr.includes(old));
  expect((await place.run('status')).stdout).toContain(old);
  expect(await erase(place)).toMatchObject({ code: 3, left: [{ store: old }] });
  expect((await place.json('reconcile')).notes.join()).toContain(old);
  renameSync(place.at('elsewhere'), old);
  // What was unfinished goes once the finished file is there.
  await until('one file', () => usersIn(old, '.gz').length === 3 && usersIn(old, '.part').length === 0);
  await place.ok('erase', '--run');
  expect(usersIn(old, '.gz')).toEqual(times(3, STAYS));
  await until('all well', async () => !(await place.run('status')).stdout.includes(old));
  await receiver.stop();
  await place.ok('archive', 'verify', old);
});
