import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { parseOptions } from '../../src/sinks/postgres/config.ts';
import { createSink } from '../../src/sinks/postgres/sink.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { makeContext, signal } from './support.ts';

const lack = lacksPostgres();

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

const address = { connectionString: 'postgres://nobody@127.0.0.1/none' };

async function optionsWith(column: string): Promise<string> {
  const around = { tables: [await definitionFile(column)] };
  return JSON.stringify(parseOptions({ ...address, tables: ['all'] }, around));
}

describe('tables of the postgres sink', () => {
  test('a config takes those of its definition files, and no others', async () => {
    const folder = await temporaryFolder();
    const sinks = { rows: { type: 'postgres', ...address, tables: ['events', 'readings'] } };
    const without = await millrace(['check', '--config', writeConfig(folder, { sinks })]);
    expect([without.code, without.stderr]).toEqual([
      2,
      expect.stringContaining('"readings" must be all, or one of events'),
    ]);
    const tables = [await definitionFile()];
    const { code, stderr } = await millrace(['check', '--config', writeConfig(folder, { sinks, tables })]);
    expect([code, stderr]).toEqual([0, '']);
  });

  test('a reload notices that a definition has changed', async () => {
    expect(await optionsWith('score')).toBe(await optionsWith('score'));
    expect(await optionsWith('score')).not.toBe(await optionsWith('points'));
    expect(JSON.parse(await optionsWith('score'))).toMatchObject({
      tables: expect.arrayContaining(['readings']),
    });
  });
});

describe.skipIf(lack !== null)(`learned tables of the postgres sink${skipped(lack)}`, () => {
  let server: Postgres;
  beforeAll(() => (server = Postgres.start()));
  afterAll(() => server.stop());

  test('a table that is added has the rows of earlier events once they are sent again, and each event is there once', async () => {
    const written = { connectionString: server.url, schema: 'added' };
    const meal = JSON.stringify({
      user_id: 'user-1',
      data: { id: 'm', name: 'soup', data: { leek: {}, salt: {} } },
    });
    const type = 'daily.data.meal.created';
    const batch = [
      contractEvent(1, { type, body: Buffer.from(meal) }),
      contractEvent(2, { type: 'raw.other' }),
    ].map((event) => {
      return { event, destination: null };
    });
    const sendTo = async (tables: readonly string[]): Promise<void> => {
      const sink = createSink(parseOptions({ ...written, tables }), makeContext());
      await sink.open(signal);
      for (const result of await sink.send(batch, signal)) expect(result).toEqual({ status: 'delivered' });
      await sink.close(signal);
    };
    const counts = (): string =>
      ['events', 'meals', 'meal_items']
        .map((table) => server.sql(`SELECT count(*) FROM added.${table}`))
        .join(' ');
    await sendTo(['events']);
    await sendTo(['events', 'meals']);
    await sendTo(['events', 'meals', 'meal_items']);
    expect(counts()).toBe('2 1 2');
    await sendTo(['events', 'meals', 'meal_items']);
    expect(counts()).toBe('2 1 2');
    server.sql(`UPDATE added._millrace_loads SET shape = '' WHERE load = 1`);
    await expect(sendTo(['events'])).rejects.toThrow('names no tables: it is of another format');
  });

  test('receivers that start at the same time make the tables of a schema once', async () => {
    const options = parseOptions({ connectionString: server.url, schema: 'at_once', tables: ['all'] });
    const sinks = Array.from({ length: 4 }, () => createSink(options, makeContext()));
    await Promise.all(sinks.map((sink) => sink.open(signal)));
    await Promise.all(sinks.map((sink) => sink.close(signal)));
    expect(server.sql('SELECT count(*) FROM at_once._millrace_loads')).toBe('1');
  });

  test('rows without a readable time that an earlier version wrote are all in the view', async () => {
    const written = { connectionString: server.url, schema: 'earlier', tables: ['timeseries'] };
    const reopen = async (n: number): Promise<void> => {
      const sink = createSink(parseOptions(written), makeContext());
      await sink.open(signal);
      const data = { data: [null, 'soon', '2026-01-05T00:00:00Z'].map((timestamp) => ({ timestamp })) };
      const body = Buffer.from(JSON.stringify({ data, user_id: 'user-1' }));
      const event = contractEvent(n, { type: 'daily.data.heartrate.created', user: 'user-1', body });
      expect(await sink.send([{ event, destination: null }], signal)).toEqual([{ status: 'delivered' }]);
      await sink.close(signal);
    };
    await reopen(1);
    await reopen(2);
    server.sql(`SET search_path TO earlier; ALTER TABLE timeseries DROP COLUMN _row_id CASCADE;
      UPDATE _millrace_tables SET shape = 'older'`);
    await reopen(3);
    expect(server.sql('SELECT count(*), count(_row_id) FROM earlier.timeseries')).toBe('9|6');
    expect(server.sql('SELECT count(*) FROM earlier.timeseries_latest')).toBe('7');
  });

  test('have the rows of their events', async () => {
    const written = { connectionString: server.url, schema: 'learned', tables: ['events', 'readings'] };
    const sink = createSink(parseOptions(written, { tables: [await definitionFile()] }), makeContext());
    await sink.open(signal);
    const event = contractEvent(1, {
      type: 'daily.data.reading.created',
      body: Buffer.from('{"data":{"id":"a","score":0.1000000000000000001,"more":1},"user_id":"user-1"}'),
    });
    const batch = [event, contractEvent(2)].map((one) => ({ event: one, destination: null }));
    expect(await sink.send(batch, signal)).toEqual(batch.map(() => ({ status: 'delivered' })));
    await sink.close(signal);
    expect(server.sql('SELECT id, score, extra, _event_id FROM learned.readings')).toBe(
      'a|0.1000000000000000001|{"more":1}|msg_1',
    );
    expect(server.sql('SELECT count(*) FROM learned.events')).toBe('2');
  });
});
