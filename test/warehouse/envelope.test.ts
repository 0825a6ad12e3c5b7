import { gunzipSync } from 'node:zlib';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { DIALECTS } from '../../src/warehouse/dialects/registry.ts';
import { schemaOf } from '../../src/warehouse/schema.ts';
import { TABLES } from '../../src/warehouse/tables.ts';
import { archive, duckdb, exported } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';

/** A made-up event with this data, received so many milliseconds after the first. */
function eventOf(n: number, type: string, data: unknown, user: string | null = 'user-1'): JournalEvent {
  const body = { event_type: type, data, team_id: 'team-1', user_id: user, client_user_id: `client "${n}"` };
  return contractEvent(n, {
    type,
    user,
    clientUser: body.client_user_id,
    body: Buffer.from(JSON.stringify(body)),
  });
}

async function rowsOf(
  events: readonly JournalEvent[],
  table: string,
): Promise<Record<string, Record<string, unknown>[]>> {
  const [path, out] = [await temporaryFolder(), await temporaryFolder()];
  await archive(path, events);
  await exported([path], out, { table, format: 'ndjson', compression: 'gzip', partition: 'none' });
  const rows: Record<string, Record<string, unknown>[]> = {};
  for (const name of readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.gz'),
  )) {
    const lines = gunzipSync(readFileSync(join(out, name)))
      .toString()
      .trim()
      .split('\n');
    rows[name.split('/')[0] ?? ''] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }
  return rows;
}

const MEAL = { id: 'meal-1', data: { Tea: {}, Cake: {} } };

test('a row made of an event says which one, and rows inside it do too', async () => {
  const event = eventOf(1, 'daily.data.meal.created', MEAL);
  const { meals = [], meal_items: items = [] } = await rowsOf([event], 'meals');
  const received = new Date(event.receivedAt).toISOString();
  const envelope = {
    _event_id: event.id,
    _event_type: 'daily.data.meal.created',
    _received_at: received,
    _loaded_at: received,
    team_id: 'team-1',
    user_id: 'user-1',
    client_user_id: event.clientUser,
  };
  expect(meals).toEqual([expect.objectContaining({ id: 'meal-1', ...envelope })]);
  expect(items.map(({ name }) => name)).toEqual(['Tea', 'Cake']);
  for (const item of items) expect(item).toMatchObject({ meal_id: 'meal-1', ...envelope });
});

test('a user that the document names counts, and an event without a user leaves the column out', async () => {
  const { meals = [] } = await rowsOf(
    [
      eventOf(1, 'daily.data.meal.created', { ...MEAL, user_id: 'of the document' }),
      eventOf(2, 'daily.data.meal.created', { ...MEAL, id: 'meal-2' }, null),
    ],
    'meals',
  );
  expect(meals.map(({ user_id: user }) => user)).toEqual(['of the document', undefined]);
});

test('the newest row is that of the document’s own time, then of the event received last', async () => {
  const type = 'daily.data.meal.updated';
  const newer = { ...MEAL, updated_at: '2026-02-02T00:00:00Z', name: 'newer' };
  const events = [
    eventOf(1, type, newer),
    eventOf(2, type, { ...newer, updated_at: '2026-02-01T00:00:00Z', name: 'late' }),
    eventOf(3, type, { ...newer, name: 'last', data: { Tea: {} } }),
    eventOf(4, type, { id: 'meal-2', name: 'first' }),
    eventOf(5, type, { id: 'meal-2', name: 'second', data: { Bread: {} } }),
  ];
  const [path, out] = [await temporaryFolder(), await temporaryFolder()];
  await archive(path, events);
  await exported([path], out, { table: 'meals' });
  const sql = await duckdb();
  for (const table of ['meals', 'meal_items']) {
    const { createTable, createView } = schemaOf(TABLES.get(table)!, 'duckdb');
    await sql(createTable);
    await sql(createView!);
    await sql(
      `INSERT INTO ${table} BY NAME SELECT * FROM read_parquet('${out}/${table}/**/*.parquet', hive_partitioning = false)`,
    );
  }
  expect(await sql('SELECT id, name FROM meals_latest ORDER BY id')).toEqual([
    ['meal-1', 'last'],
    ['meal-2', 'second'],
  ]);
  expect(await sql('SELECT meal_id, name FROM meal_items_latest ORDER BY 1, 2')).toEqual([
    ['meal-1', 'Tea'],
    ['meal-2', 'Bread'],
  ]);
});

test('an event without a table, or of another shape than its table, is counted and is no reject', async () => {
  const events = [
    eventOf(1, 'something.nobody.knows', { a: 1 }),
    eventOf(2, 'daily.data.meal.created', 'a text'),
    eventOf(3, 'daily.data.meal.created', MEAL),
  ];
  const path = await temporaryFolder();
  await archive(path, events);
  const all = await exported([path], await temporaryFolder());
  expect(all).toMatchObject({
    rejects: 0,
    rows: { events: 3 },
    without_table: { 'something.nobody.knows': 1 },
  });
  const meals = await exported([path], await temporaryFolder(), { table: 'meals' });
  expect(meals).toMatchObject({
    rejects: 0,
    rows: { meals: 1 },
    without_table: { 'daily.data.meal.created': 1 },
  });
});

test.each(Object.keys(DIALECTS) as (keyof typeof DIALECTS)[])(
  'every table has its statements in %s',
  (dialect) => {
    for (const entry of TABLES.values()) {
      const { createTable, createView } = schemaOf(entry, dialect);
      expect(createTable).toContain(entry.definition.name);
      if (entry.definition.key.length > 0) expect(createView).toContain('_loaded_at');
    }
  },
);
