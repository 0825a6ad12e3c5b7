import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { parseOptions } from '../../../src/sinks/follow-up/config.ts';
import { createSink } from '../../../src/sinks/follow-up/sink.ts';
import { makeContext, signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { childEnvironment, MAIN, millrace, type Ended } from '../../support/millrace.ts';
import { standIn, type StandIn } from './stand-in.ts';
import { lines, rowIds } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-31'];
const ALL = ['--all-users', ...RANGE];
const PRELOAD = fileURLToPath(new URL('./killing-renames.ts', import.meta.url));

const run = ({ env }: StandIn, out: string, ...args: readonly string[]): Promise<Ended> =>
  millrace(['backfill', '--out', out, ...args], { env, cwd: out });

/** Ids of the meals in the files, and that each has its two items. */
function rowsIn(out: string): string[] {
  const ids = rowIds(join(out, 'meals.ndjson'));
  const items = lines(join(out, 'meal_items.ndjson')).map(({ meal_id: meal }) => String(meal));
  expect(items.toSorted()).toEqual(ids.flatMap((id) => [id, id]));
  return ids;
}

/** A request that waits until it is let go, and when it has come. */
function held(service: StandIn) {
  const [came, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  service.instead = async (path) => {
    if (path === '/v2/user') return null;
    came.resolve();
    await go.promise;
    return null;
  };
  return { came: came.promise, go: go.resolve };
}

/** Ended by the kill before the nth rename: true; there were fewer: false. */
function isKilled(nth: number, service: StandIn, out: string): Promise<boolean> {
  const args = ['--import', PRELOAD, MAIN, 'backfill', '--out', out, ...ALL];
  const env = childEnvironment({ ...service.env, KILL_BEFORE_RENAME: String(nth) });
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { env }, () => resolve(child.signalCode === 'SIGKILL'));
  });
}

test('killed before each file that it replaces, a run again loses no row of those whom it cannot fetch', async () => {
  const service = await standIn({ users: 3 });
  const [, second = ''] = service.users;
  const out = await temporaryFolder();
  expect((await run(service, out, ...ALL)).code).toBe(0);
  let kills = 0;
  for (; await isKilledWithout(second, kills + 1); kills += 1) {
    const resumed = await run(service, out, '--resume');
    expect([kills, resumed.code, rowsIn(out)]).toEqual([kills, 3, service.mealIds()]);
    service.instead = () => null;
    expect([(await run(service, out, '--resume')).code, rowsIn(out)]).toEqual([0, service.mealIds()]);
    expect(existsSync(join(out, '_backfill'))).toBe(false);
  }
  // What is kept, meals, items, rejects, outcomes, whole pulls, and that all is written.
  expect([kills, rowsIn(out)]).toEqual([7, service.mealIds()]);

  function isKilledWithout(user: string, nth: number): Promise<boolean> {
    service.instead = (_, asked) => (asked === user ? 404 : null);
    return isKilled(nth, service, out);
  }
});

test('a run that is begun again, or resumed for other days, users or windows, is refused and stays as it is', async () => {
  const service = await standIn({ users: 2 });
  const out = await temporaryFolder();
  service.instead = (_, user) => (user === service.users[1] ? 403 : null);
  expect((await run(service, out, ...ALL)).code).toBe(1);
  const again = await run(service, out, ...ALL);
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('--resume')]);
  for (const other of [
    ['--since', '2026-01-02'],
    ['--until', '2026-02-01'],
    ['--window', '1'],
    ['--provider', 'a'],
    ['--user', service.users[0] ?? '', ...RANGE],
  ])
    expect([other, (await run(service, out, '--resume', ...other)).code]).toEqual([other, 2]);
  // The same from another place, where the service has moved to.
  const moved = await standIn({ users: 2 });
  expect((await run(moved, out, '--resume')).code).toBe(0);
  expect(rowsIn(out)).toEqual(moved.mealIds());
});

test('beside a follow-up pull of the same user each has all rows', async () => {
  const service = await standIn({ users: 2 });
  const [user = ''] = service.users;
  const [out, path] = [await temporaryFolder(), await temporaryFolder()];
  const sink = createSink(parseOptions({ path, baseUrl: service.url, apiKey: 'made-up' }), makeContext());
  onTestFinished(() => sink.close(signal));
  await sink.open(signal);
  const type = 'historical.data.meal.created';
  const data = { user_id: user, start_date: '2026-01-01', end_date: '2026-01-31' };
  const body = Buffer.from(JSON.stringify({ event_type: type, data }));
  const event = contractEvent(1, { type, user, body });
  const { came, go } = held(service);
  const pulled = sink.send([{ event, destination: null }], signal);
  const filled = run(service, out, ...ALL);
  await came;
  go();
  expect([await pulled, (await filled).code]).toEqual([[{ status: 'delivered' }], 0]);
  expect(rowsIn(out)).toEqual(service.mealIds());
  const [folder = ''] = readdirSync(path);
  expect(rowsIn(join(path, folder))).toEqual(service.mealIds([user]));
});
