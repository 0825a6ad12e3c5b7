import { execFile } from 'node:child_process';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { childEnvironment, MAIN } from '../../support/millrace.ts';
import { until } from '../../support/until.ts';
import { dataService, SOURCE, type Item } from './data-service.ts';
import { lines, tasksIn } from './support.ts';

const SERIES = ['glucose', 'heartrate', 'hrv', 'steps'];
const USERS = 5;
const ITEMS = 4000;
const MOST_MEMORY_KB = 250 * 1024;

function itemsOf(user: string, resource: string): Item[] {
  return Array.from({ length: ITEMS }, (_, n) => {
    const time = new Date(Date.UTC(2026, 0, 1, 0, 0, 10 * n)).toISOString();
    const id = `${user.slice(-4)}-${n}`;
    if (resource === 'sleep')
      return { id, calendar_date: time.slice(0, 10), date: time, type: 'long_sleep', source: SOURCE };
    return { id: n, timestamp: time, unit: 'made_up', value: n };
  });
}

test('100,000 items of five resources within 250 MB; killed six times and resumed, each comes once', async () => {
  const service = await dataService(USERS, 1000);
  for (const user of service.users)
    for (const resource of [...SERIES, 'sleep'])
      service.items.set(`${user} ${resource}`, itemsOf(user, resource));
  const out = await temporaryFolder();
  const work = join(out, '_backfill');
  const range = ['--all-users', '--since', '2026-01-01', '--until', '2026-01-31'];
  const all = [...range, '--resource', [...SERIES, 'sleep'].join(','), '--concurrency', '2'];
  let most = 0;
  const start = (...args: readonly string[]) => {
    const child = execFile(process.execPath, [MAIN, 'backfill', '--out', out, ...args], {
      env: childEnvironment(service.env),
    });
    const watch = setInterval(() => {
      const status =
        child.exitCode === null && existsSync(`/proc/${child.pid}/status`)
          ? readFileSync(`/proc/${child.pid}/status`, 'utf8')
          : '';
      most = Math.max(most, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    }, 20);
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve)).finally(() =>
      clearInterval(watch),
    );
    return { child, ended };
  };
  for (const goal of [0, 1, 5, 9, 14, 20]) {
    const { child, ended } = start(...(goal === 0 ? all : ['--resume', '--concurrency', '2']));
    await until(`task ${goal}`, () =>
      goal === 0 ? existsSync(join(work, 'state.json')) : tasksIn(work) >= goal,
    );
    child.kill('SIGKILL');
    await ended;
  }
  expect(await start('--resume').ended).toBe(0);
  const seen = new Map<string, number>();
  for (const table of ['timeseries', 'sleep'])
    for await (const line of createInterface({ input: createReadStream(join(out, `${table}.ndjson`)) })) {
      const row = JSON.parse(line) as Record<string, unknown>;
      const key = JSON.stringify(
        table === 'sleep' ? row['id'] : [row['user_id'], row['resource'], row['value']],
      );
      seen.set(key, (seen.get(key) ?? 0) + 1);
    }
  expect([seen.size, new Set(seen.values())]).toEqual([USERS * 5 * ITEMS, new Set([1])]);
  expect(lines(join(out, '_pulls.ndjson')).map(({ items }) => items)).toEqual(Array(USERS * 5).fill(ITEMS));
  expect(most).toBeLessThan(MOST_MEMORY_KB);
  expect(most).toBeGreaterThan(0);
});
