import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Places } from '../../../src/archive/places.ts';
import { runLoad } from '../../../src/export/load/run.ts';
import { PostgresDatabase } from '../../../src/sinks/postgres/database.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import { userId } from '../../privacy/erase/support.ts';
import { archive, mealEvent, mealOf, archived, mealEvents } from '../support.ts';
import { signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { lacksPgBouncer, PgBouncer } from '../../support/pgbouncer.ts';
import { Postgres } from '../../support/postgres.ts';
import { skipped } from '../../support/requirements.ts';
import { until } from '../../support/until.ts';
import { QUIET } from './quiet.ts';
import { delivered, load, MEAL_TABLES, postgresSink, waitingIn, type LoadedDatabase } from './support.ts';

const lack = lacksPgBouncer();
const ALL = MEAL_TABLES.flatMap((table) => ['--table', table]);

let server: Postgres;
beforeAll(() => {
  if (lack === null) server = Postgres.start();
});
afterAll(() => {
  if (lack === null) server.stop();
});

/** Numbers of the test's meal events. */
function numbers(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

/** What a schema has, as counted behind the pooler's back: events, meals, foods, and the least and greatest event. */
function counted(schema: string): string {
  return server.sql(`SELECT count(*), (SELECT count(*) FROM ${schema}.meals), (SELECT count(*) FROM ${schema}.meal_items),
    min(substr(id, 5)::int), max(substr(id, 5)::int) FROM ${schema}.events`);
}

function expected(first: number, last: number): string {
  const all = numbers(first, last);
  return [all.length, all.length, all.reduce((sum, n) => sum + mealOf(n).foods, 0), first, last].join('|');
}

describe.skipIf(lack !== null).each([1, 5])(
  `PostgreSQL behind PgBouncer with a pool of %i${skipped(lack)}`,
  (connections) => {
    let pooler: PgBouncer;
    let schemas = 0;
    beforeAll(async () => {
      pooler = await PgBouncer.start(server, connections);
    });
    afterAll(() => pooler.stop());

    const newSchema = (name: string): string => `${name}_${connections}_${(schemas += 1)}`;
    const inPool = (schema: string): Pick<LoadedDatabase, 'to'> => ({
      to: ['--to', pooler.url, '--schema', schema],
    });

    const openSink = async (schema: string): Promise<Send> => (await postgresSink(pooler.url, schema)).send;
    /** Another program in the pool. */
    const beside = async (): Promise<pg.Client> => {
      const client = new pg.Client({ connectionString: pooler.url });
      await client.connect();
      return client;
    };
    /** In each session of the pool. */
    const inEach = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T[]> => {
      const clients = await Promise.all(numbers(1, connections).map(beside));
      await Promise.all(clients.map((client) => client.query('BEGIN')));
      // Each holds a session now.
      const done = await Promise.all(clients.map(work));
      await Promise.all(clients.map((client) => client.query('COMMIT')));
      await Promise.all(clients.map((client) => client.end()));
      return done;
    };
    const setInEach = async (sql: string): Promise<void> =>
      void (await inEach((client) => client.query(sql)));

    test('two receivers have their rows in their own schemas, and leave nothing in the sessions of others', async () => {
      const [prod, staging] = [newSchema('prod'), newSchema('staging')];
      const sinks = [await openSink(prod), await openSink(staging)] as const;
      const client = await beside();
      const seen: unknown[] = [];
      const look = async (): Promise<void> => {
        for (let looks = 0; looks < 100; looks += 1) seen.push(...(await stateOf(client)));
      };
      await Promise.all([sendAll(sinks[0], 1, 160), sendAll(sinks[1], 201, 360), look()]);
      await client.end();
      seen.push(...(await inEach(stateOf)).flat());
      expect([counted(prod), counted(staging)]).toEqual([expected(1, 160), expected(201, 360)]);
      expect(seen).toEqual([]);
    });

    test('what another program has left in its sessions leads no row astray', async () => {
      const schema = newSchema('ours');
      const other = newSchema('other');
      const names = [
        ...MEAL_TABLES,
        '_millrace_events',
        '_millrace_loads',
        '_millrace_tables',
        '_millrace_lock',
      ];
      const tables = names.map((name) => `CREATE TEMPORARY TABLE IF NOT EXISTS ${name} (id text);`).join('');
      server.sql(`CREATE SCHEMA ${other}`);
      await setInEach(
        `SET search_path TO ${other}; SET TIME ZONE 'Asia/Tokyo'; SET synchronous_commit TO off;
         SET statement_timeout TO '1min'; ${tables}`,
      );
      onTestFinished(() =>
        setInEach(`DROP TABLE ${names.map((name) => `pg_temp.${name}`).join(', ')}; RESET ALL`),
      );
      const sink = await openSink(schema);
      // A trigger of the user's finds its own table, and says what the session is like.
      server.sql(`SET search_path TO ${schema};
        CREATE TABLE seen (synchronous_commit text, statement_timeout text);
        CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO seen SELECT current_setting('synchronous_commit'), current_setting('statement_timeout');
          RETURN NULL;
        END $$;
        CREATE TRIGGER see AFTER INSERT ON events EXECUTE FUNCTION see()`);
      await sendAll(sink, 1, 20);
      const path = await archived(mealEvents(11, 40));
      expect(await load(path, inPool(schema), ...ALL)).toMatchObject({
        code: 0,
        summary: { records: 30, duplicates: 10 },
      });
      expect(counted(schema)).toBe(expected(1, 40));
      expect(server.sql(`SELECT DISTINCT synchronous_commit, statement_timeout FROM ${schema}.seen`)).toBe(
        'on|0',
      );
      expect(server.sql(`SELECT count(*) FROM pg_class WHERE relnamespace = '${other}'::regnamespace`)).toBe(
        '0',
      );
    });

    test('an erasure removes the rows of its own schemas, and its receipt says how many of each', async () => {
      const folder = await temporaryFolder();
      const [prod, staging, other] = [newSchema('prod'), newSchema('staging'), newSchema('other')];
      const gone = userId(2);
      const batch = numbers(1, 20).map((n) => {
        const user = userId(n % 4);
        const body = mealEvent(n).body.toString();
        return mealEvent(n, { user, body: Buffer.from(body.replaceAll(/user-\d/g, user)) });
      });
      for (const schema of [prod, staging, other])
        expect(await (await openSink(schema))(batch)).toEqual(delivered(batch));
      await setInEach(`SET search_path TO ${other}`);
      onTestFinished(() => setInEach('RESET search_path'));
      const warehouse = { type: 'postgres', connectionString: pooler.url };
      const config = writeConfig(folder, {
        erasure: { path: join(folder, 'erasure') },
        sinks: {
          prod: { ...warehouse, schema: prod },
          staging: { ...warehouse, schema: staging },
        },
      });
      const ended = await millrace(['erase', gone, '--now', '--json', '--config', config]);
      expect(ended.code, ended.stderr).toBe(0);
      const { receipts } = JSON.parse(ended.stdout) as { receipts: { items: object[] }[] };
      const items = [prod, staging].flatMap((schema) =>
        ['events', 'meals'].map((item) => ({
          store: `PostgreSQL at localhost:6432/postgres, schema ${schema}`,
          item,
          removed: 5,
        })),
      );
      expect(receipts[0]?.items).toEqual(
        expect.arrayContaining(items.map((item) => expect.objectContaining(item) as object)),
      );
      const left = (schema: string): string[] =>
        ['events', 'meals'].map((table) =>
          server.sql(`SELECT count(*) FROM ${schema}.${table} WHERE user_id = '${gone}'`),
        );
      expect([prod, staging, other].map(left)).toEqual([
        ['0', '0'],
        ['0', '0'],
        ['5', '5'],
      ]);
    });

    test('a batch whose connection is cut in mid-transaction is there once when it is sent again', async () => {
      const schema = newSchema('cut');
      const send = await openSink(schema);
      const locker = await holdLock(schema);
      const batch = mealEvents(1, 10);
      const cut = send(batch);
      server.sql(`SELECT pg_terminate_backend(${await until('the batch waits', waiting)})`);
      expect(await cut).toEqual(batch.map(() => expect.objectContaining({ status: 'retry', sink: true })));
      await locker.close();
      expect(await send(batch)).toEqual(delivered(batch));
      expect(counted(schema)).toBe(expected(1, 10));
    });

    test('of two loads at once the second ends with 2, and the first has all rows', async () => {
      const path = await temporaryFolder();
      const schema = newSchema('loaded');
      await archive(path, mealEvents(1, 30));
      const options = { connectionString: pooler.url, schema, timeout: 15_000 };
      const first = await PostgresDatabase.openAlone(options, signal);
      const refused = {
        code: 2,
        stderr: expect.stringContaining('Another process is loading') as unknown,
      };
      expect(await load(path, inPool(schema))).toMatchObject(refused);
      await first.begin();
      let ended = false;
      const second = load(path, inPool(schema)).finally(() => (ended = true));
      await until('the second load waits or ends', async () => ended || (await pooler.waiting()) > 0);
      await first.run('ROLLBACK');
      expect(await second).toMatchObject(refused);
      const work = {
        paths: [path],
        places: new Places(),
        tables: TABLES,
        wanted: MEAL_TABLES,
        stepBytes: 1,
        signal,
      };
      const summary = await runLoad(first, { ...work, ...QUIET });
      await first.close();
      expect(summary).toMatchObject({ files: 3, records: 30, complete: true });
      expect(counted(schema)).toBe(expected(1, 30));
      expect(await load(path, inPool(schema))).toMatchObject({ code: 0, summary: { before: 3 } });
      expect(server.sql(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'`)).toBe('0');
    });

    test('a load continues where another one was cut off', async () => {
      const path = await temporaryFolder();
      const schema = newSchema('resumed');
      await archive(path, mealEvents(1, 10));
      await load(path, inPool(schema), ...ALL);
      await archive(path, mealEvents(11, 30));
      const locker = await holdLock(schema);
      const cut = load(path, inPool(schema));
      server.sql(`SELECT pg_terminate_backend(${await until('the load waits', waiting)})`);
      expect(await cut).toMatchObject({ code: 1 });
      await locker.close();
      expect(await load(path, inPool(schema))).toMatchObject({ code: 0, summary: { ok: true } });
      expect(counted(schema)).toBe(expected(1, 30));
    });

    test('a load that another has taken over from writes no more', async () => {
      const options = { connectionString: pooler.url, schema: newSchema('overtaken'), timeout: 15_000 };
      const first = await PostgresDatabase.openAlone(options, signal);
      server.sql(`UPDATE ${options.schema}._millrace_lock SET owner = 'another'`);
      await expect(first.begin()).rejects.toMatchObject({ code: 'database_in_use' });
      await first.close();
      expect(server.sql(`SELECT owner FROM ${options.schema}._millrace_lock`)).toBe('another');
    });
  },
);

const waiting = (): string | null => waitingIn(server);

type Send = Awaited<ReturnType<typeof postgresSink>>['send'];

/** Two batches at a time, as a feed sends them. */
async function sendAll(send: Send, first: number, last: number): Promise<void> {
  for (let n = first; n <= last; n += 20) {
    const batches = [mealEvents(n, n + 9), mealEvents(n + 10, n + 19)].map((batch) => send(batch));
    for (const results of await Promise.all(batches)) expect(results).toEqual(delivered(results));
  }
}

/** What a session of the pool has that a new one has not. */
async function stateOf(client: pg.Client): Promise<unknown[]> {
  const { rows } = await client.query(
    `SELECT name, setting FROM pg_settings WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding')
     UNION ALL SELECT 'statement', name FROM pg_prepared_statements
     UNION ALL SELECT 'cursor', name FROM pg_cursors
     UNION ALL SELECT 'lock', locktype FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
     UNION ALL SELECT 'table', relname FROM pg_class WHERE relpersistence = 't'`,
  );
  return rows;
}

/** A session of its own that keeps everybody from the meals of a schema until it is closed. */
async function holdLock(schema: string): Promise<{ close(): Promise<void> }> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`BEGIN; LOCK TABLE ${schema}.meals`);
  return { close: () => client.end() };
}
