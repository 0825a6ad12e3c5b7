import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { dataService, samplesOf, sleepOf, type DataService } from './data-service.ts';
import { lastLine, lines } from './support.ts';

const RANGE = ['--since', '2026-01-01', '--until', '2026-01-31'];

interface Backfilled {
  readonly service: DataService;
  readonly out: string;
  readonly run: (...args: readonly string[]) => Promise<Ended>;
  /** A member of each row of a table. */
  readonly column: (table: string, name: string) => unknown[];
}

async function backfilled(users: number): Promise<Backfilled> {
  const service = await dataService(users);
  for (const user of service.users) {
    service.items.set(`${user} sleep`, sleepOf(user, 5));
    service.items.set(`${user} heartrate`, samplesOf(11));
    service.items.set(`${user} steps`, samplesOf(3));
    service.items.set(`${user} profile`, [{ id: `${user}-profile`, user_id: user, height: 180 }]);
  }
  const out = await temporaryFolder();
  return {
    service,
    out,
    run: (...args) =>
      millrace(['backfill', '--out', out, '--json', '--all-users', ...RANGE, ...args], {
        env: service.env,
        cwd: out,
      }),
    column: (table, name) => lines(join(out, `${table}.ndjson`)).map((row) => row[name]),
  };
}

test('summaries, series and an object of each user become rows of their tables', async () => {
  const { service, out, run, column } = await backfilled(2);
  const ended = await run('--resource', 'sleep,heartrate', '--resource', 'steps,profile');
  expect(ended.code, ended.stderr).toBe(0);
  expect(lastLine(ended)).toMatchObject({ rows: { sleep: 10, timeseries: 28, profiles: 2 }, rejects: 0 });
  expect(column('sleep', 'id')).toEqual(
    service.users.flatMap((user) => sleepOf(user, 5).map(({ id }) => id)),
  );
  expect(column('profiles', 'height')).toEqual([180, 180]);
  const samples = lines(join(out, 'timeseries.ndjson'));
  const wanted = service.users.flatMap((user_id) =>
    [['heartrate', 11] as const, ['steps', 3] as const].flatMap(([resource, count]) =>
      samplesOf(count).map(({ value }) => ({ user_id, resource, value, source_provider: 'made_up' })),
    ),
  );
  expect(samples).toMatchObject(wanted);
  expect(lines(join(out, '_backfill.ndjson')).slice(0, 4)).toMatchObject([
    { resource: 'heartrate', status: 'done', timeseries: 11, rejects: 0 },
    { resource: 'profile', profiles: 1 },
    { resource: 'sleep', sleep: 5 },
    { resource: 'steps', timeseries: 3 },
  ]);
});
