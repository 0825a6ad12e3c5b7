import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { archive, archived, filesBelow, mealEvent, mealEvents, mealOf } from '../support.ts';
import { erasuresOver, folderStore } from '../../privacy/erase/support.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { PostgresDatabase } from '../../../src/sinks/postgres/database.ts';
import { MEALS } from '../../../src/tables/definitions/meals.ts';
import { signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { skipped } from '../../support/requirements.ts';
import { until, within } from '../../support/until.ts';
import {
  delivered,
  inPostgres,
  kindsOf,
  load,
  MEAL_TABLES,
  postgresServer,
  postgresSink,
  waitingIn,
  type LoadedDatabase,
} from './support.ts';

const meals = mealEvents(1, 30);
const FOODS = meals.reduce((sum, _, n) => sum + mealOf(n + 1).foods, 0);
const COUNTS =
  'SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM meals), (SELECT count(*) FROM meal_items) FROM events';
const ALL = MEAL_TABLES.flatMap((table) => ['--table', table]);

/** Milliseconds in which somebody who waits expects an end. */
const SOON = 10_000;

const postgres = postgresServer();
const { lack, server, newSchema } = postgres;

describe.each(kindsOf(postgres))('millrace load into $kind', ({ skip, make }) => {
  const given = async (): Promise<{ path: string; database: LoadedDatabase }> => {
    const path = await archived(meals);
    return { path, database: await make() };
  };

  test.skipIf(skip)('has every event and its rows once, whatever runs how often', async () => {
    const { path, database } = await given();
    expect(await load(path, database, ...ALL)).toMatchObject({
      code: 0,
      summary: { ok: true, files: 3, records: 30, rows: { events: 30, meals: 30, meal_items: FOODS } },
    });
    expect(await database.sql(COUNTS)).toEqual([`30|30|30|${FOODS}`]);
    expect(await load(path, database)).toMatchObject({ code: 0, summary: { files: 0, before: 3, rows: {} } });
    await archive(path, [mealEvent(31), mealEvent(3)]);
    expect(await load(path, database)).toMatchObject({
      summary: { files: 2, records: 2, duplicates: 1, before: 3 },
    });
    expect(await database.sql(COUNTS)).toEqual([`31|31|31|${FOODS + mealOf(31).foods}`]);
  });

  test.skipIf(skip)('takes rows that begin with columns of their document, such as samples', async () => {
    const path = await temporaryFolder();
    const body =
      '{"event_type":"daily.data.steps.created","data":{"source":{"provider":"oura","type":"ring"},"older":1,"data":' +
      '[{"timestamp":"2026-01-01T00:00:00Z","unit":"count","value":1.5,"new":1},{"id":7}]},"user_id":"user-1"}';
    await archive(path, [contractEvent(1, { type: 'daily.data.steps.created', body: Buffer.from(body) })]);
    const database = await make();
    expect(await load(path, database, '--table', 'timeseries')).toMatchObject({
      code: 0,
      summary: { rows: { timeseries: 2 } },
    });
    expect(
      await database.sql(
        `SELECT resource, source_provider, source_type, sample_id, unit, abs(value - 1.5) < 0.0000001, batch_extra,
           extra, user_id FROM timeseries ORDER BY unit`,
      ),
    ).toEqual([
      expect.stringMatching(/^steps\|oura\|ring\|\|count\|(t|true)\|\{"older":1\}\|\{"new":1\}\|user-1$/),
      'steps|oura|ring|7|||{"older":1}||user-1',
    ]);
  });

  test.skipIf(skip)('adds columns to a table of a version before, those of its indexes too', async () => {
    const { path, database } = await given();
    await load(path, database);
    await database.sql(
      `DROP VIEW events_latest; ALTER TABLE events RENAME COLUMN _event_id TO older;
       DROP INDEX IF EXISTS events_on_event; UPDATE _millrace_tables SET shape = 'older'; UPDATE _millrace_loads SET shape = 'older'`,
    );
    expect(await load(path, database)).toMatchObject({ code: 0, summary: { replaced: 3 } });
    expect(await database.sql('SELECT count(*), count(DISTINCT _event_id) FROM events')).toEqual(['30|30']);
  });

  test.skipIf(skip)('keeps values exactly: numbers, times, texts', async () => {
    const { path, database } = await given();
    await load(path, database, ...ALL);
    const { id } = mealOf(5);
    expect(
      await database.sql(
        `SELECT id, replace(name, chr(10), '_'), source_id, timestamp = '2026-01-06T08:00:00.123456Z'::timestamptz,
           CAST(extra AS text) LIKE '%"never_seen":{"n":5.100000000000000001}%' FROM meals WHERE id = '${id}'`,
      ),
    ).toEqual([
      expect.stringMatching(new RegExp(`^${id}\\|Meal_5\\|9007199254740993\\|(t|true)\\|(t|true)$`)),
    ]);
    expect(
      await database.sql(
        `SELECT name, energy_value = 5.100000000000000001, CAST(event AS text) LIKE '%"energy":{"value":5.100000000000000001}%'
           FROM meal_items i JOIN events e ON e.id = i._event_id WHERE meal_id = '${id}'`,
      ),
    ).toEqual([expect.stringMatching(/^Made up, 0 "tbsp"\|(t|true)\|(t|true)$/)]);
  });

  test.skipIf(skip)(
    'has what is left after an erasure, of files rewritten and of files removed',
    async () => {
      const { path, database } = await given();
      await archive(path, [mealEvent(33)]);
      await archive(path, [mealEvent(7), mealEvent(34)]);
      await load(path, database, ...ALL);
      await erase(path, 'user-5');
      expect(await load(path, database)).toMatchObject({ code: 0, summary: { ok: true } });
      const left = [...meals.map((_, n) => n + 1), 33, 34].filter((n) => n % 7 !== 5);
      expect(await numbersIn(database)).toEqual(left);
      expect(await database.sql(`SELECT count(*) FROM meals WHERE user_id = 'user-5'`)).toEqual(['0']);
      expect(await database.sql(COUNTS)).toEqual([
        [left.length, left.length, left.length, foodsOf(left)].join('|'),
      ]);
    },
  );

  test.skipIf(skip)('keeps an event that another file has too when the first goes', async () => {
    const { path, database } = await given();
    const other = await temporaryFolder();
    await archive(other, [mealEvent(3), mealEvent(99)]);
    // What no manifest lists has nothing to be missing from.
    rmSync(join(path, '_manifest.jsonl'));
    await load([path, other], database, ...ALL);
    const [first = ''] = filesBelow(path, /\.ndjson/);
    rmSync(join(path, first));
    expect(await load([path, other], database)).toMatchObject({ code: 0, summary: { replaced: 2 } });
    const left = [...meals.map((_, n) => n + 1).filter((n) => n % 3 !== 0), 3, 99];
    expect(await numbersIn(database)).toEqual(left.toSorted((a, b) => a - b));
    expect(await database.sql('SELECT count(*) FROM meal_items')).toEqual([String(foodsOf(left))]);
  });

  test.skipIf(skip)('loses no row to a file that is only missing, and says so', async () => {
    const { path, database } = await given();
    await load(path, database, ...ALL);
    for (const file of filesBelow(path, /\.ndjson/)) rmSync(join(path, file));
    const { stderr, summary } = await load(path, database);
    expect(summary).toMatchObject({ files: 0, missing: 3, replaced: 0 });
    expect(stderr).toContain('missing: its rows stay');
    expect(await database.sql(COUNTS)).toEqual([`30|30|30|${FOODS}`]);
  });

  test.skipIf(skip)('fills a table that is added later from the whole archive', async () => {
    const { path, database } = await given();
    await load(path, database);
    expect(await load(path, database, '--table', 'meals')).toMatchObject({
      summary: { files: 3, rows: { events: 30, meals: 30 } },
    });
    expect(await database.sql('SELECT count(*) FROM meals_latest')).toEqual(['30']);
    expect(await numbersIn(database)).toEqual(meals.map((_, n) => n + 1));
  });

  test.skipIf(skip)('names records that make no row and ends with 3', async () => {
    const { path, database } = await given();
    await archive(path, [mealEvent(31, { body: Buffer.from('{"data":{"name":"no id"}}') })]);
    const { code, stderr, summary } = await load(path, database, ...ALL);
    expect([code, summary]).toEqual([3, expect.objectContaining({ ok: false, rejects: 1, records: 31 })]);
    expect(stderr).toContain('meals: no_identity: id is missing');
    expect(await numbersIn(database)).toHaveLength(31);
  });
});

describe('millrace load', () => {
  test.skipIf(lack !== null)(`says what is wrong with a database${skipped(lack)}`, async () => {
    const path = await archived(meals);
    const at = async (to: string, ...more: string[]): Promise<[number | null, string]> => {
      const { code, stderr } = await load(path, { to: ['--to', to] }, ...more);
      const { error } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as {
        error: { title: string; detail: string };
      };
      return [code, `${error.title}: ${error.detail}`];
    };
    expect(await at(server().url.replace('/postgres?', '/nowhere?'))).toEqual([
      1,
      expect.stringMatching(/Database refused: .*create the database first: .*"nowhere" does not exist/),
    ]);
    expect(await at(server().url.replace('postgres@', 'stranger:wrong@'))).toEqual([
      1,
      expect.stringMatching(/Database refused: .*check user, password.*"stranger" does not exist/),
    ]);
    expect(await at('postgres://postgres@127.0.0.1:1/postgres')).toEqual([
      1,
      expect.stringMatching(/Database is not available: 127\.0\.0\.1:1\/postgres: .*ECONNREFUSED/),
    ]);
    expect(await at('mysql://x')).toEqual([2, expect.stringContaining('--to must be')]);
    expect(await at('bigquery:acme.health')).toEqual([
      2,
      expect.stringContaining('other warehouses: docs/warehouse.md'),
    ]);
    expect(await at(server().url, '--table', 'nothing')).toEqual([
      2,
      expect.stringContaining('--table nothing'),
    ]);
  });

  test.skipIf(lack !== null)(`passes over what a sink has delivered${skipped(lack)}`, async () => {
    const path = await archived(meals);
    const { send } = await postgresSink(server().url, 'shared');
    const batch = meals.slice(0, 10);
    expect(await send(batch)).toEqual(delivered(batch));
    const database = inPostgres(server(), 'shared');
    expect(await load(path, database)).toMatchObject({ code: 0, summary: { records: 30, duplicates: 10 } });
    // And the other way round.
    expect(await send([mealEvent(30)])).toEqual(delivered([30]));
    expect(await database.sql(COUNTS)).toEqual([`30|30|30|${FOODS}`]);
  });

  test.skipIf(lack !== null)(`is the only one that loads into a schema${skipped(lack)}`, async () => {
    const path = await archived(meals);
    const connection = { connectionString: server().url, schema: 'alone', timeout: 15_000 };
    const other = await PostgresDatabase.openAlone(connection, signal);
    expect(await load(path, inPostgres(server(), 'alone'))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Another process is loading') as unknown,
    });
    await other.close();
    expect(await load(path, inPostgres(server(), 'alone'))).toMatchObject({ code: 0 });
  });

  test.skipIf(lack !== null).each([
    { stall: 'while another session holds a lock', stopped: false },
    { stall: 'while the server has stopped', stopped: true },
  ])(`ends at the first signal $stall${skipped(lack)}`, async ({ stopped }) => {
    const path = await temporaryFolder();
    const schema = newSchema();
    const database = inPostgres(server(), schema);
    await archive(path, meals.slice(0, 10));
    await load(path, database, ...ALL);
    await archive(path, meals.slice(10));
    const locker = await lockMeals(schema);
    const stop = new AbortController();
    const running = millrace(['load', path, ...database.to], { signal: stop.signal });
    const pid = await until('the load waits', waiting);
    if (stopped) process.kill(Number(pid), 'SIGSTOP');
    stop.abort();
    const ended = await within('the load ends', running, SOON);
    if (stopped) process.kill(Number(pid), 'SIGCONT');
    expect(ended).toMatchObject({ code: 3, stdout: expect.stringContaining('interrupted') as unknown });
    // The lock is still held, and what was left behind stops no other load.
    await until('the server notices', () => waiting() === null);
    await locker.close();
    expect(await load(path, database)).toMatchObject({ code: 0, summary: { complete: true } });
    expect(await database.sql(COUNTS)).toEqual([`30|30|30|${FOODS}`]);
  });

  test('ends at the first signal while a server does not answer', async () => {
    const path = await temporaryFolder();
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    onTestFinished(() => {
      sockets.forEach((socket) => socket.destroy());
      silent.close();
    });
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const stop = new AbortController();
    const to = ['--to', `postgres://somebody@127.0.0.1:${port}/postgres`];
    const running = millrace(['load', path, ...to], { signal: stop.signal });
    await until('the load connects', () => sockets.length > 0);
    stop.abort();
    expect(await within('the load ends', running, SOON)).toMatchObject({ code: 3 });
  });

  test.skipIf(lack !== null)(`a sink closes while its batch waits for a lock${skipped(lack)}`, async () => {
    const schema = newSchema();
    const { sink, send } = await postgresSink(server().url, schema);
    const locker = await lockMeals(schema);
    const sending = send([mealEvent(1)]);
    await until('the batch waits', waiting);
    await within('the sink closes', sink.close(AbortSignal.abort()), SOON);
    expect(await within('the batch ends', sending, SOON)).toEqual([
      expect.objectContaining({ status: 'retry' }),
    ]);
    await locker.close();
    expect(await inPostgres(server(), schema).sql('SELECT count(*) FROM meals')).toEqual(['0']);
  });

  test.skipIf(lack !== null)(`can roll back after rows that are none${skipped(lack)}`, async () => {
    const connection = { connectionString: server().url, schema: 'rolled', timeout: 15_000 };
    const database = await PostgresDatabase.openAlone(connection, signal);
    await database.begin();
    await database.run('CREATE TABLE meals ()');
    const append = database.append(MEALS, Buffer.from('{"no_column":1}\n'), 1);
    await expect(append).rejects.toThrow('a row has a column');
    await database.run('ROLLBACK');
    await database.close();
  });
});

const waiting = (): string | null => waitingIn(server());

/** A session that keeps everybody else from the table of meals until it is closed. */
async function lockMeals(schema: string): Promise<PostgresDatabase> {
  const options = { connectionString: server().url, schema, timeout: 15_000 };
  const session = await PostgresDatabase.open(options, signal);
  await session.begin();
  await session.run('LOCK TABLE meals');
  return session;
}

async function erase(path: string, id: string): Promise<void> {
  const { erasures } = erasuresOver(await temporaryFolder(), [folderStore(path)]);
  await erasures.request({ by: 'user', id, team: null }, true);
  const { left } = await erasures.run();
  expect(left).toEqual([]);
}

function foodsOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, n) => sum + mealOf(n).foods, 0);
}

/** The events that are there, by the numbers that the test made them with. */
async function numbersIn(database: LoadedDatabase): Promise<number[]> {
  return (await database.sql('SELECT id FROM events')).map((id) => Number(id.slice(4))).sort((a, b) => a - b);
}

test('what a killed run has left of rows beside a DuckDB file goes with the next', async () => {
  const [path, folder] = [await archived([]), await temporaryFolder()];
  const left = join(folder, 'loaded.duckdb.loading.parquet');
  writeFileSync(left, '{"user_id":"user-1"}\n');
  const ended = await millrace(['load', path, '--to', `duckdb:${join(folder, 'loaded.duckdb')}`]);
  expect([ended.code, existsSync(left)]).toEqual([0, false]);
});
