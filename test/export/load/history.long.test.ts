import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/start.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { environment, sandbox, tasksIn } from '../../history/backfill/support.ts';
import { startReceiver } from '../../sandbox/receiver.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../../support/millrace.ts';
import { until } from '../../support/until.ts';
import { archive } from '../support.ts';
import { inDuckDB, load } from './support.ts';

const [SINCE, UNTIL] = ['2020-01-01', '2030-01-01'];
/** Tables of summaries by resource, and their lists in the answers. */
const SUMMARIES = { activity: 'activity', body: 'body', sleep: 'sleep', workouts: 'workouts', meal: 'meals' };
const SERIES = ['glucose', 'heartrate', 'hrv', 'steps'];

interface Answer {
  readonly groups?: Readonly<Record<string, readonly { readonly data: readonly Sample[] }[]>>;
  readonly next_cursor?: string | null;
  readonly next?: string | null;
  readonly [list: string]: unknown;
}

interface Sample {
  readonly timestamp: string;
  readonly value: number;
}

/** What the service has of these users, in plain HTTP: ids by table, and samples. */
async function truthOf({ url, apiKey }: Sandbox, users: readonly string[]) {
  const ask = async (path: string, cursor?: string | null): Promise<Answer> => {
    const query = new URLSearchParams({ start_date: SINCE, end_date: UNTIL, ...(cursor ? { cursor } : {}) });
    const answer = await fetch(`${url}${path}?${query.toString()}`, {
      headers: { 'x-service-api-key': apiKey },
    });
    expect([path, answer.status]).toEqual([path, 200]);
    return (await answer.json()) as Answer;
  };
  const truth = new Map<string, string[]>();
  const days = new Set<string>();
  for (const [resource, list] of Object.entries(SUMMARIES)) {
    const ids: string[] = [];
    for (const user of users) {
      const answer = await ask(`/v2/summary/${resource}/${user}`);
      const items = answer[list] as { id: string; calendar_date: string }[];
      ids.push(...items.map(({ id }) => id));
      for (const { calendar_date: day } of items) days.add(day);
    }
    truth.set(list, ids.toSorted());
  }
  const samples: string[] = [];
  for (const user of users)
    for (const series of SERIES)
      for (let cursor: string | null | undefined = ''; cursor !== null && cursor !== undefined;) {
        const answer: Answer = await ask(`/v2/timeseries/${user}/${series}/grouped`, cursor);
        for (const group of Object.values(answer.groups ?? {}).flat())
          for (const { timestamp, value } of group.data)
            samples.push([user, series, Date.parse(timestamp), value].join('|'));
        cursor = answer.next_cursor ?? answer.next;
      }
  truth.set('timeseries', samples.toSorted());
  return { truth, days: [...days].toSorted() };
}

/** The same of the last states in the database. */
async function statesIn(database: ReturnType<typeof inDuckDB>) {
  const states = new Map<string, string[]>();
  for (const table of Object.values(SUMMARIES))
    states.set(table, (await database.sql(`SELECT id FROM ${table}_latest`)).toSorted());
  const named = SERIES.map((series) => `'${series}'`).join();
  const samples = await database.sql(
    `SELECT user_id, resource, epoch_ms("timestamp"), CAST(value AS DOUBLE) FROM timeseries_latest
     WHERE resource IN (${named})`,
  );
  const asNumbers = samples.map((row) => {
    const [user, series, at, value] = row.split('|');
    return [user, series, at, Number(value)].join('|');
  });
  states.set('timeseries', asNumbers.toSorted());
  return states;
}

test('all resources of the sandbox, killed and resumed, beside webhooks of the same items and after an erasure, are its truth', async () => {
  const receiver = await startReceiver();
  const service = await sandbox({ users: 3, webhooks: [{ url: receiver.url }] });
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const [out, archived] = [join(folder, 'history'), join(folder, 'archive')];
  const users = service.state.users.list(service.teamId).map(({ id }) => id);
  const { truth, days } = await truthOf(service, users);
  for (const [table, ids] of truth) expect([table, ids.length > 0]).toEqual([table, true]);

  /** Has the service send what some users have of a day, and archives it. */
  const hear = async (who: readonly string[], day: string): Promise<number> => {
    const before = receiver.received.length;
    for (const user of who)
      for (const resource of [...Object.keys(SUMMARIES), ...SERIES]) service.sendData(user, resource, day);
    await service.state.sender.idle();
    const events = receiver.received.slice(before).map(({ body, event, headers }, n) => {
      const id = String(headers['svix-id'] ?? headers['webhook-id'] ?? `${day} ${n}`);
      const [type, user] = [String(event['event_type']), String(event['user_id'])];
      return { ...contractEvent(before + n, { id, type, user, body }), receivedAt: Date.now() };
    });
    await archive(archived, events);
    return events.length;
  };
  expect(await hear(users, days.at(-1) ?? '')).toBeGreaterThan(users.length);

  const start = (...args: readonly string[]) => {
    const child = execFile(process.execPath, [MAIN, ...args, '--config', config], {
      env: childEnvironment(environment(service)),
      cwd: folder,
    });
    return { child, ended: new Promise<number | null>((resolve) => child.once('exit', resolve)) };
  };
  const backfill = ['backfill', '--out', out];
  const all = ['--all-users', '--resource', 'all', '--since', SINCE, '--until', UNTIL];
  const work = join(out, '_backfill');
  for (const goal of [1, 40]) {
    const { child, ended } = start(...backfill, ...(goal === 1 ? all : ['--resume']));
    await until(`task ${goal}`, () => tasksIn(work) >= goal);
    child.kill('SIGKILL');
    await ended;
  }
  expect(await start(...backfill, '--resume').ended).toBe(0);
  expect(await hear(users.slice(1), days.at(-2) ?? '')).toBeGreaterThan(1);

  const database = inDuckDB(join(folder, 'loaded.duckdb'));
  const tables = [...Object.values(SUMMARIES), 'timeseries'].flatMap((table) => ['--table', table]);
  const rows = join(folder, 'loaded.duckdb.loading.parquet');
  for (let kills = 0; kills < 2; kills += 1) {
    const { child, ended } = start('load', archived, out, ...database.to, ...tables);
    await until('rows', () => existsSync(rows) || child.exitCode !== null);
    child.kill('SIGKILL');
    await ended;
  }
  const whole = await load([archived, out], database, ...tables);
  expect(whole, whole.stderr).toMatchObject({ code: 0, summary: { ok: true, problems: 0, rejects: 0 } });
  expect(await statesIn(database)).toEqual(truth);
  for (const table of ['meals', 'sleep', 'timeseries']) {
    const heard = `SELECT count(*) > 0 FROM ${table} WHERE _event_id IS NOT NULL`;
    expect([table, await database.sql(heard)]).toEqual([table, ['true']]);
  }
  const again = await load([archived, out], database, ...tables);
  expect(again.summary).toMatchObject({ files: 0, rows: {}, vanished: 0 });

  const [erased = '', ...others] = users;
  const erase = await millrace(['erase', erased, '--now', '--json', '--config', config], {
    env: environment(service),
    cwd: folder,
  });
  expect([0, 3], erase.stderr).toContain(erase.code);
  expect(await load([archived, out], database, ...tables)).toMatchObject({ code: 0 });
  expect(await statesIn(database)).toEqual((await truthOf(service, others)).truth);
  const left = tables
    .filter((_, n) => n % 2 === 1)
    .map((table) => `SELECT count(*) FROM ${table} WHERE user_id = '${erased}'`);
  expect(await database.sql(left.join(' UNION ALL '))).toEqual(left.map(() => '0'));
});
