import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { METRICS } from '../../src/observe/metrics/catalogue.ts';
import type { MetricState } from '../../src/observe/metrics/definition.ts';
import { parseOptions } from '../../src/sinks/postgres/config.ts';
import { resultOf, toMillraceError } from '../../src/vendors/postgres/failure.ts';
import { createSink } from '../../src/sinks/postgres/sink.ts';
import { userId } from '../privacy/erase/support.ts';
import { mealEvent } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { runContract } from './run-contract.ts';
import { makeContext, signal } from './support.ts';

const lack = lacksPostgres();
const NOWHERE = { connectionString: 'postgres://user@127.0.0.1/none' };

async function definitionFile(column = 'score'): Promise<string> {
  const file = join(await temporaryFolder(), 'tables.yaml');
  const columns = [
    { name: 'id', type: 'text', required: true },
    { name: column, type: 'decimal' },
  ];
  const table = { name: 'readings', events: ['daily.data.reading.'], key: ['id'], columns };
  writeFileSync(file, JSON.stringify({ version: 1, tables: [table] }));
  return file;
}

// What a broken connection is called by the system has the length of a SQLSTATE.
test.each([
  ['EPIPE', true],
  ['ECONNRESET', true],
  [null, true],
  ['57P01', true],
  ['53300', true],
  ['40001', true],
  ['28P01', false],
  ['42501', false],
  ['22P02', false],
  ['XX000', false],
])('%s: worth another try: %s', (code, retryable) => {
  const failed = Object.assign(new Error(`made up: ${code}`), code === null ? {} : { code });
  expect(toMillraceError('db', failed)).toMatchObject({
    code: retryable ? 'database_unavailable' : 'database_refused',
    retryable,
  });
  expect(resultOf(failed, 1).status).toBe(code === '22P02' ? 'refused' : 'retry');
});

async function optionsWith(column: string): Promise<string> {
  const around = { tables: [await definitionFile(column)] };
  return JSON.stringify(parseOptions({ ...NOWHERE, tables: ['all'] }, around));
}

describe('tables of the postgres sink', () => {
  test('a config takes those of its definition files, and no others', async () => {
    const folder = await temporaryFolder();
    const sinks = { rows: { type: 'postgres', ...NOWHERE, tables: ['events', 'readings'] } };
    const check = async (more: object): Promise<unknown[]> => {
      const { code, stderr } = await millrace(['check', '--config', writeConfig(folder, { sinks, ...more })]);
      return [code, stderr];
    };
    const refused = expect.stringContaining('"readings" must be all, or one of events');
    expect(await check({})).toEqual([2, refused]);
    expect(await check({ tables: [await definitionFile()] })).toEqual([0, '']);
  });

  test('a reload notices that a definition has changed', async () => {
    const first = await optionsWith('score');
    expect(await optionsWith('score')).toBe(first);
    expect(await optionsWith('points')).not.toBe(first);
    expect(JSON.parse(first)).toMatchObject({ tables: expect.arrayContaining(['readings']) });
  });
});

test('an erasure that cannot reach the database says so and stays open', async () => {
  const folder = await temporaryFolder();
  const connectionString = 'postgres://user:made-up-word@127.0.0.1:1/none';
  const config = writeConfig(folder, {
    erasure: { path: join(folder, 'erasure') },
    sinks: { warehouse: { type: 'postgres', connectionString } },
  });
  const { code, stdout, stderr } = await millrace([
    'erase',
    userId(2),
    '--now',
    '--json',
    '--config',
    config,
  ]);
  expect(code).toBe(3);
  expect(stdout + stderr).toMatch(/PostgreSQL at 127\.0\.0\.1:1\/none/);
  expect(stdout + stderr).not.toContain('made-up-word');
});

describe.skipIf(lack !== null)(`the postgres sink${skipped(lack)}`, async () => {
  let server: Postgres;
  beforeAll(() => (server = Postgres.start()));
  afterAll(() => server.stop());

  const sinkFor = (options: object, around?: Parameters<typeof parseOptions>[1]) =>
    createSink(parseOptions({ connectionString: server.url, ...options }, around), makeContext());

  /** By a sink that is opened for them, and closed again; all must be delivered. */
  async function send(
    options: object,
    events: readonly JournalEvent[],
    around?: Parameters<typeof parseOptions>[1],
  ): Promise<void> {
    const sink = sinkFor(options, around);
    await sink.open(signal);
    const batch = events.map((event) => ({ event, destination: null }));
    expect(await sink.send(batch, signal)).toEqual(batch.map(() => ({ status: 'delivered' })));
    await sink.close(signal);
  }

  describe('the sink contract', async () => {
    /** What arrived, in the order in which it lies in the table; as hex, so that no text stands in the way. */
    const ARRIVED = `
      SELECT encode(convert_to(id, 'UTF8'), 'hex'),
        encode(coalesce(decode(body_base64, 'base64'), convert_to(event::text, 'UTF8')), 'hex')
      FROM events ORDER BY ctid`;
    let schemas = 0;
    await runContract(async () => {
      const schema = `contract_${(schemas += 1)}`;
      const tables = ['events', 'meals'];
      // The first is made before the server is there, and only looked at.
      const sink =
        schemas === 1 ? createSink(parseOptions(NOWHERE), makeContext()) : sinkFor({ schema, tables });
      const arrived = (): { id: string; destination: null; body: Buffer }[] =>
        server
          .sql(`SET search_path TO ${schema};${ARRIVED}`)
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => {
            const [id = '', body = ''] = line.split('|').map((hex) => Buffer.from(hex, 'hex'));
            return { id: id.toString(), destination: null, body: Buffer.from(body) };
          });
      return {
        sink,
        destinations: [],
        arrived: async () => arrived(),
        outage: { begin: async () => server.down(), end: async () => server.up() },
        dispose: () => sink.close(signal),
      };
    });
  });

  test('a table that is added has the rows of earlier events once they are sent again, and each event is there once', async () => {
    const data = { id: 'm', name: 'soup', data: { leek: {}, salt: {} } };
    const body = Buffer.from(JSON.stringify({ user_id: 'user-1', data }));
    const events = [
      contractEvent(1, { type: 'daily.data.meal.created', body }),
      contractEvent(2, { type: 'raw.other' }),
    ];
    const all = ['events', 'meals', 'meal_items'];
    const sendTo = (tables: readonly string[]): Promise<void> => send({ schema: 'added', tables }, events);
    const counts = (): string =>
      all.map((table) => server.sql(`SELECT count(*) FROM added.${table}`)).join(' ');
    await sendTo(['events']);
    await sendTo(['events', 'meals']);
    for (let n = 0; n < 2; n += 1) {
      await sendTo(all);
      expect(counts()).toBe('2 1 2');
    }
    server.sql(`UPDATE added._millrace_loads SET shape = '' WHERE load = 1`);
    await expect(sendTo(['events'])).rejects.toThrow('names no tables: it is of another format');
  });

  test('it says when the newest event of each table was received, as the table itself does; a refused batch changes nothing', async () => {
    const schema = 'newest';
    const sink = sinkFor({ schema, tables: ['events', 'meals'] });
    await sink.open(signal);
    expect([...(sink.newest?.() ?? [])]).toEqual([]);
    const [first, last] = [Date.UTC(2026, 10, 21), Date.UTC(2026, 10, 22)];
    const events = [
      mealEvent(1, { receivedAt: first }),
      contractEvent(2, { type: 'raw.other', receivedAt: last }),
      mealEvent(3, { receivedAt: first - 1000 }),
    ];
    const sendTo = (some: readonly JournalEvent[]) =>
      sink.send(
        some.map((event) => ({ event, destination: null })),
        signal,
      );
    await sendTo(events);
    server.sql(`ALTER TABLE newest.meals ADD CONSTRAINT none CHECK (false) NOT VALID`);
    expect(await sendTo([mealEvent(4, { receivedAt: last })])).toMatchObject([{ status: 'refused' }]);
    const newest = Object.fromEntries(sink.newest?.() ?? []);
    await sink.close(signal);
    const asked = ['events.received_at', 'meals._received_at'].map((column) => {
      const [table = '', name = ''] = column.split('.');
      return [
        table,
        Number(server.sql(`SELECT extract(epoch FROM max(${name})) * 1000 FROM ${schema}.${table}`)),
      ] as const;
    });
    expect(newest).toEqual(Object.fromEntries(asked));
    const metric = METRICS.find(({ name }) => name === 'millrace_table_newest_received_timestamp_seconds');
    const status = { sinks: [{ sink: 'made_up', newest }] };
    expect(metric?.read({ status } as unknown as MetricState)).toEqual([
      { labels: { sink: 'made_up', table: 'events' }, value: last / 1000 },
      { labels: { sink: 'made_up', table: 'meals' }, value: first / 1000 },
    ]);
  });

  test('receivers that start at the same time make the tables of a schema once', async () => {
    const sinks = Array.from({ length: 4 }, () => sinkFor({ schema: 'at_once', tables: ['all'] }));
    await Promise.all(sinks.map((sink) => sink.open(signal)));
    await Promise.all(sinks.map((sink) => sink.close(signal)));
    expect(server.sql('SELECT count(*) FROM at_once._millrace_loads')).toBe('1');
  });

  test('rows without a readable time that an earlier version wrote are all in the view', async () => {
    const times = [null, 'soon', '2026-01-05T00:00:00Z'].map((timestamp) => ({ timestamp }));
    const body = Buffer.from(JSON.stringify({ data: { data: times }, user_id: 'user-1' }));
    const reopen = (n: number): Promise<void> =>
      send({ schema: 'earlier', tables: ['timeseries'] }, [
        contractEvent(n, { type: 'daily.data.heartrate.created', user: 'user-1', body }),
      ]);
    await reopen(1);
    await reopen(2);
    server.sql(`SET search_path TO earlier; ALTER TABLE timeseries DROP COLUMN _row_id CASCADE;
      UPDATE _millrace_tables SET shape = 'older'`);
    await reopen(3);
    expect(server.sql('SELECT count(*), count(_row_id) FROM earlier.timeseries')).toBe('9|6');
    expect(server.sql('SELECT count(*) FROM earlier.timeseries_latest')).toBe('7');
  });

  test('learned tables have the rows of their events', async () => {
    const body = Buffer.from('{"data":{"id":"a","score":0.1000000000000000001,"more":1},"user_id":"user-1"}');
    const events = [contractEvent(1, { type: 'daily.data.reading.created', body }), contractEvent(2)];
    const options = { schema: 'learned', tables: ['events', 'readings'] };
    await send(options, events, { tables: [await definitionFile()] });
    expect(server.sql('SELECT id, score, extra, _event_id FROM learned.readings')).toBe(
      'a|0.1000000000000000001|{"more":1}|msg_1',
    );
    expect(server.sql('SELECT count(*) FROM learned.events')).toBe('2');
  });

  test('an erasure removes the rows of the user from every table, and those without a user that name them', async () => {
    const folder = await temporaryFolder();
    const tables = ['events', 'meals', 'meal_items'];
    const options = { connectionString: server.url, schema: 'erased', tables };
    const events = Array.from({ length: 20 }, (_, n) => {
      const user = userId(n % 4);
      const body = mealEvent(n + 1)
        .body.toString()
        .replaceAll(/user-\d/g, user);
      return mealEvent(n + 1, { user, body: Buffer.from(body) });
    });
    const unnamed = [2, 3].map((user) =>
      mealEvent(20 + user, {
        type: 'made.up.note',
        user: null,
        clientUser: null,
        // Not compact: the exact bytes are kept as base64 too.
        body: Buffer.from(`{ "note": "about ${userId(user).toUpperCase()}" }`),
      }),
    );
    await send(options, [...events, ...unnamed]);
    const mentions = (user: number): number[] =>
      tables.map((table) => {
        const rows = `erased.${table} AS t WHERE row_to_json(t)::text ILIKE '%${userId(user)}%'`;
        return Number(server.sql(`SELECT count(*) FROM ${rows}`));
      });
    const others = [0, 1, 3].map(mentions);
    expect(mentions(2)).toEqual([6, 5, expect.any(Number)]);
    const config = writeConfig(folder, {
      erasure: { path: join(folder, 'erasure') },
      sinks: { warehouse: { type: 'postgres', ...options } },
    });
    const ended = await millrace(['erase', userId(2), '--now', '--json', '--config', config]);
    expect(ended.code, ended.stderr).toBe(0);
    const { receipts } = JSON.parse(ended.stdout) as { receipts: { items: object[] }[] };
    expect(receipts[0]?.items).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ item: 'events', removed: 6 }),
        expect.objectContaining({ item: 'meals', removed: 5 }),
      ]),
    );
    expect(mentions(2)).toEqual([0, 0, 0]);
    expect([0, 1, 3].map(mentions)).toEqual(others);
    expect(server.sql('SELECT count(*) FROM erased.events')).toBe('16');
  });

  test('an erasure that does not find the list of tables says so and stays open; an empty schema is done', async () => {
    const folder = await temporaryFolder();
    const erase = async (schema: string): Promise<readonly [number | null, unknown]> => {
      const warehouse = { type: 'postgres', connectionString: server.url, schema };
      const config = writeConfig(folder, {
        erasure: { path: join(folder, schema) },
        sinks: { warehouse },
      });
      const { code, stdout } = await millrace(['erase', userId(2), '--now', '--json', '--config', config]);
      return [code, JSON.parse(stdout)];
    };
    await send({ schema: 'listless', tables: ['events'] }, [mealEvent(1, { user: userId(2) })]);
    server.sql('DROP TABLE listless._millrace_tables');
    const reason = expect.stringContaining('no table _millrace_tables') as string;
    const store = expect.stringContaining('schema listless') as string;
    const waiting = { receipts: [], left: [expect.objectContaining({ store, item: 'rows', reason })] };
    expect(await erase('listless')).toEqual([3, expect.objectContaining(waiting)]);
    expect(await erase('never_made')).toEqual([0, expect.objectContaining({ left: [] })]);
  });
});
