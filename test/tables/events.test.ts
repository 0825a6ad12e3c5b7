import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { columnsOf } from '../../src/tables/definition.ts';
import { schemaOf } from '../../src/tables/sql/schema.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { archive, exported } from '../export/support.ts';
import { skipped } from '../support/requirements.ts';
import { type Row, rowsIn } from './support.ts';
import { WAREHOUSES } from './warehouses.ts';
import {
  columnsIn,
  MadeUpData,
  nestedIn,
  readShapes,
  type Shape,
  type Variant,
  VARIANTS,
} from './event-shapes.ts';

/** An event with made-up data, and what is to become of it. */
interface Made {
  readonly id: string;
  readonly type: string;
  readonly variant: Variant;
  readonly shape: Shape;
  readonly data: unknown;
  readonly unknown: readonly string[];
}

const { shapes, columns } = readShapes();
const types = shapes.flatMap((shape) => shape.types);
const made: Made[] = shapes.flatMap((shape, nth) =>
  shape.types.flatMap((type, at) =>
    VARIANTS.map((variant): Made => {
      const making = new MadeUpData(variant, nth * 1000 + at * 10 + VARIANTS.indexOf(variant));
      const data = making.of(shape);
      return { id: `${type} ${variant}`, type, variant, shape, data, unknown: making.unknown };
    }),
  ),
);

/** Rows by table, and in it by event. */
const rows = new Map<string, Map<string, Row[]>>();
const refused: string[] = [];

const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'));
// PostgreSQL reads as another user.
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  const path = join(folder, 'archive');
  const events = made.map(({ id, type, data }, n) => {
    const body = {
      event_type: type,
      data,
      team_id: 'team-1',
      user_id: `user-${n % 7}`,
      client_user_id: null,
    };
    return contractEvent(n, { id, type, body: Buffer.from(JSON.stringify(body)) });
  });
  await archive(path, events);
  for (const { definition, document } of TABLES.ofEvents()) {
    // A table inside another one comes with it.
    if (definition !== document && document.ownRows !== false) continue;
    const out = join(folder, definition.name);
    const done = await exported([path], out, { table: definition.name, format: 'ndjson', partition: 'none' });
    refused.push(
      ...Object.keys(done.without_table).map((type) => `${definition.name}: ${type} has no table`),
      ...(done.rejects + done.problems > 0 ? done.messages : []),
    );
    if (definition.name !== 'events') readRows(out);
  }
});

function readRows(out: string): void {
  for (const [table, all] of Object.entries(rowsIn(out)))
    rows.set(
      table,
      Map.groupBy(all, (row) => String(row['_event_id'])),
    );
}

/** The columns that each row of the event has to have, by what is in its body. */
function expectedRows({ shape, data }: Made): Row[] {
  const { table, fields } = shape;
  if (shape.rows === 'each') return (data as Row[]).map((item) => columnsIn(table, fields, item, columns));
  const own = columnsIn(table, fields, data as Row, columns);
  if (shape.rows === 'data') return [own];
  const samples = fields.find(({ name }) => name === 'data')?.kind.fields ?? [];
  return (data as { data: Row[] }).data.map((sample) => {
    const sampled = columnsIn(table, samples, sample, columns);
    if (typeof sampled['value'] !== 'string') return { ...own, ...sampled };
    const { value, ...rest } = sampled;
    return { ...own, ...rest, value_text: value };
  });
}

test('no event is rejected, and none is without a table', () => {
  expect(refused).toEqual([]);
});

test(`of ${types.length} documented event types at least 150 become typed rows`, () => {
  const typed = new Set(
    [...rows.values()].flatMap((byEvent) => [...byEvent.keys()].map((id) => id.split(' ')[0])),
  );
  expect(types.length).toBeGreaterThanOrEqual(194);
  expect(types.filter((type) => !typed.has(type))).toEqual([]);
  expect(typed.size).toBeGreaterThanOrEqual(150);
});

describe.each(VARIANTS)('data that is %s', (variant) => {
  test.each(shapes.map((shape) => [shape.types[0] ?? '', shape] as const))('%s', (_, shape) => {
    for (const one of made.filter((each) => each.shape === shape && each.variant === variant)) {
      const found = rows.get(shape.table)?.get(one.id) ?? [];
      expect(found, one.id).toMatchObject(expectedRows(one));
      for (const [table, inside] of Object.entries(nestedIn(shape, one.data as Row, columns)))
        expect(rows.get(table)?.get(one.id) ?? [], one.id).toMatchObject(inside);
      const all = [...rows.values()].flatMap((byEvent) => byEvent.get(one.id) ?? []);
      if (variant !== 'strange')
        expect(
          all.map(({ extra, batch_extra: batch }) => [extra, batch]),
          one.id,
        ).toEqual(all.map(() => [undefined, undefined]));
      const text = JSON.stringify(all);
      expect(one.unknown.filter((value) => !text.includes(value))).toEqual([]);
    }
  });
});

/** Made of the service's answers too, which say more than events do. */
const OF_ANSWERS = new Set([
  'events',
  'meals',
  'meal_items',
  'orders',
  'order_events',
  'parsing_jobs',
  'parsing_job_results',
]);
const tables = TABLES.ofEvents().map(({ definition }) => definition);

test.each(tables.filter(({ name }) => !OF_ANSWERS.has(name)).map((table) => [table.name, table] as const))(
  'every column of %s has a value somewhere',
  (name, table) => {
    const all = [...(rows.get(name)?.values() ?? [])].flat();
    const unset = columnsOf(table)
      .map((column) => column.name)
      .filter((column) => all.every((row) => row[column] === undefined));
    // Every row here has a known key.
    const allowed = new Set(['repetition', '_row_id']);
    expect(unset.filter((column) => !allowed.has(column))).toEqual([]);
  },
);

test.each(tables.map(({ name }) => name).filter((name) => name !== 'events'))(
  'every row of %s says whose it is and which event it is of',
  (name) => {
    const all = [...(rows.get(name)?.values() ?? [])].flat();
    expect(all.length).toBeGreaterThan(0);
    for (const row of all)
      expect(row).toMatchObject({
        _event_id: expect.any(String),
        _event_type: String(row['_event_id']).split(' ')[0],
        _received_at: row['_loaded_at'],
        team_id: expect.any(String),
        user_id: expect.any(String),
      });
  },
);

test('a table is known by columns that it has', () => {
  for (const { definition } of TABLES.values()) {
    const has = columnsOf(definition).map(({ name }) => name);
    expect(has, definition.name).toEqual(
      expect.arrayContaining([...definition.key, definition.newest ?? has[0]]),
    );
    expect(new Set(has).size, definition.name).toBe(has.length);
  }
});

const loads = WAREHOUSES.filter(({ dialect }) => dialect !== 'clickhouse');

describe.each(loads)('the rows load into $title', ({ dialect, lack, open }) => {
  test.skipIf(lack !== null)(`all of them, and no value is refused${skipped(lack)}`, async () => {
    const warehouse = await open();
    const entries = TABLES.ofEvents().filter(({ definition }) => rows.has(definition.name));
    const statements = entries.map((entry) => {
      const { name } = entry.document;
      const from = `${join(folder, name, entry.definition.name)}/`;
      const { createTable, createView, load } = schemaOf(entry, dialect, from, {
        format: { format: 'ndjson', compression: 'gzip' },
      });
      return [createTable, createView ?? '', load];
    });
    for (const part of [0, 1, 2]) await warehouse.run(statements.map((all) => all[part]).join('\n'));
    const counts = entries.map(({ definition: { name } }) => `SELECT '${name}', count(*) FROM ${name}`);
    const expected = entries.map(({ definition: { name } }) => [
      name,
      String([...rows.get(name)!.values()].flat().length),
    ]);
    const found = await warehouse.rows(counts.join(' UNION ALL '));
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
    const kinds = await warehouse.rows('SELECT count(DISTINCT _event_type) FROM timeseries_latest');
    expect(kinds).toEqual([[String(typesOf('timeseries'))]]);
  });
});

function typesOf(table: string): number {
  return shapes.filter((shape) => shape.table === table).flatMap((shape) => shape.types).length;
}
