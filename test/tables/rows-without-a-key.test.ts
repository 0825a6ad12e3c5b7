import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { shapeText } from '../../src/tables/ndjson/shape-text.ts';
import { DIALECTS, type DialectName } from '../../src/tables/sql/dialects/registry.ts';
import { schemaOf } from '../../src/tables/sql/schema.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { parseTables } from '../../src/tables/learned/read-tables.ts';
import { archive, exported } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { serve } from '../support/listen.ts';
import { millrace } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';
import { eventOf } from './support.ts';
import { runAll, WAREHOUSES, type RunningDialect, type Warehouse } from './warehouses.ts';

/** Some of these times are readable, and some are not; the number of rows is the same either way. */
const TIMES = [
  '2026-01-01T24:00:00Z',
  '2026-01-02T24:00:00Z',
  '2026-01-03T10:00:00,5Z',
  1767261600,
  '2026-01-05T00:00:00Z',
  '2026-01-06T00:00:00Z',
  null,
  'soon',
];
const sampleLine = (timestamp: unknown, value: number): string =>
  JSON.stringify({ source: { provider: 'made_up' }, data: [{ timestamp, unit: 'bpm', value }] });
const SAMPLES = TIMES.map((time, n) => sampleLine(time, n + 1)).join('\n');

const op = (processed: number, startedAt: string | null): object => ({
  type: 'made_up_operation',
  status: 'success',
  provider: 'made_up',
  processed,
  started_at: startedAt,
});

/** Shapes a text as `millrace ndjson` does. @returns the file of rows */
async function rowsOf(table: string, text: string, ...set: readonly string[]): Promise<string> {
  const folder = await temporaryFolder();
  chmodSync(folder, 0o755);
  const file = join(folder, `input.${text.startsWith('[') ? 'json' : 'ndjson'}`);
  writeFileSync(file, text);
  const settings = set.flatMap((one) => ['--set', one]);
  const ended = await millrace(['ndjson', file, '--table', table, ...settings, '--out', folder]);
  expect(ended.code, ended.stderr).toBe(0);
  return join(folder, `${table}.ndjson`);
}

/** Loads with the printed statements. @returns rows in the table and in its view */
async function printedLoad(
  { dialect }: RunningDialect,
  warehouse: Warehouse,
  table: string,
  files: readonly string[],
): Promise<number[]> {
  const entry = TABLES.entry(table);
  for (const file of files) {
    const { createTable, createView, load } = schemaOf(entry, dialect, file);
    await runAll(dialect, warehouse, [createTable, createView, load].join('\n'));
  }
  const counts = [table, `${table}_latest`].map((name) => warehouse.rows(`SELECT count(*) FROM ${name}`));
  return (await Promise.all(counts)).map(([row]) => Number(row?.[0]));
}

const completion = (n: number, start: unknown): ReturnType<typeof eventOf> =>
  eventOf(n, 'historical.data.sleep.created', {
    user_id: 'user-1',
    provider: 'made_up',
    start_date: start,
    end_date: '2026-01-02T00:00:00Z',
  });

const USER = ['user_id=u1', 'resource=heartrate'];
const LOADED = '_loaded_at=2026-02-01T00:00:00Z';
const samples = (text: string, ...set: readonly string[]): Promise<string> =>
  rowsOf('timeseries', text, ...USER, ...set);
const keyed = (more: object): string =>
  JSON.stringify({ data: [{ timestamp: '2026-01-05T00:00:00Z', value: 1, ...more }] });

/** Files that are loaded one after the other, and how many rows the table and its view have then. */
const LOADS: readonly [string, string, () => Promise<string[]>, readonly [number, number]][] = [
  [
    'samples without a readable time are all loaded, once, and all in the view',
    'timeseries',
    async () => {
      const file = await samples(SAMPLES);
      return [file, file];
    },
    [8, 8],
  ],
  [
    'a file that is shaped twice has its rows without a time once in the view',
    'timeseries',
    () => Promise.all([samples(SAMPLES, LOADED), samples(SAMPLES, LOADED.replace('02-01', '02-02'))]),
    [16, 8],
  ],
  [
    'equal rows without a time stay apart: in a file, and in two files of one run',
    'timeseries',
    async () => {
      const same = sampleLine('soon', 1);
      const one = await samples(`${same}\n${same}`, LOADED);
      return [one, await samples(`${same}\n${sampleLine('later', 2)}`, LOADED), one];
    },
    [4, 4],
  ],
  [
    'a row with an empty text in its key does not replace one without it',
    'timeseries',
    () => Promise.all([samples(keyed({}), LOADED), samples(keyed({ sensor_location: '' }), LOADED)]),
    [2, 2],
  ],
  [
    'operations without a readable start are all there',
    'bulk_ops',
    async () => {
      const all = [op(0, null), op(7, null), op(7, null), op(9, '2026-01-01T99:00:00Z')];
      const file = await rowsOf('bulk_ops', JSON.stringify(all));
      return [file, file];
    },
    [4, 4],
  ],
];

describe.each(WAREHOUSES)('$title', (running) => {
  const { lack, open } = running;

  test.skipIf(lack !== null).each(LOADS)(`%s${skipped(lack)}`, async (_, table, files, counts) => {
    expect(await printedLoad(running, await open(), table, await files())).toEqual(counts);
  });

  test.skipIf(lack !== null)(
    `events whose documents lack a value of the key are all there, and a repeated event once${skipped(lack)}`,
    async () => {
      const warehouse = await open();
      const known = '2026-01-01T00:00:00Z';
      const events = [null, null, 'soon', known, known].map((start, n) => completion(n + 1, start));
      const [path, again, out] = [await temporaryFolder(), await temporaryFolder(), await temporaryFolder()];
      chmodSync(out, 0o755);
      await archive(path, events);
      // Other bytes, so that the second archive is not taken for a copy of the first.
      await archive(again, [...events, completion(9, null)]);
      const { format } = running;
      await exported([path, again], out, { table: 'historical_completions', format });
      const place = join(out, 'historical_completions/');
      expect(await printedLoad(running, warehouse, 'historical_completions', [place, place])).toEqual([6, 5]);
    },
  );
});

const LEARNED = `version: 1
tables:
  - name: visits
    events: [daily.data.visit.]
    key: [id]
    columns:
      - { name: id, type: text }
      - { name: note, type: text }
    nested:
      - at: steps
        each: array
        name: visit_steps
        key: [visit_id, step_index]
        columns:
          - { name: visit_id, type: text, from: { parent: id } }
          - { name: step_index, type: integer, from: { of: position } }
          - { name: what, type: text }
`;

const visit = (id: unknown, ...steps: string[]): object => ({
  id,
  steps: steps.map((what) => ({ what })),
});

const [duckdb] = WAREHOUSES as readonly [RunningDialect];

test('rows inside documents without a key are in the view of the nested table', async () => {
  const warehouse = await duckdb.open();
  const known = TABLES.with(parseTables(LEARNED, 'visits.yaml'));
  const folder = await temporaryFolder();
  const text = JSON.stringify([visit(null, 'a', 'b'), visit(null, 'c'), visit(7, 'd'), visit('v', 'e')]);
  const written: Record<string, string> = {};
  await shapeText(chunks(Buffer.from(text), text.length), {
    tables: ['visits', 'visit_steps'],
    known,
    given: { _loaded_at: '2026-02-01T00:00:00Z' },
    write: async (table, rows) => void (written[table] = (written[table] ?? '') + rows.toString()),
    onReject: (reject) => expect.unreachable(JSON.stringify(reject)),
  });
  for (const table of ['visits', 'visit_steps']) {
    const file = join(folder, `${table}.ndjson`);
    writeFileSync(file, written[table] ?? '');
    const { createTable, createView, load } = schemaOf(known.entry(table), 'duckdb', file);
    await runAll('duckdb', warehouse, [createTable, createView, load, load].join('\n'));
  }
  expect(await warehouse.rows('SELECT what FROM visit_steps_latest ORDER BY what')).toEqual(
    ['a', 'b', 'c', 'd', 'e'].map((what) => [what]),
  );
  expect(await warehouse.rows('SELECT count(*) FROM visits_latest')).toEqual([['4']]);
});

test('operations without a start that are pulled are all there', async () => {
  const operations = [op(0, null), op(7, null), op(9, '2026-01-01T99:00:00Z')];
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data: operations, next_cursor: null }));
  });
  const env = { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
  const out = await temporaryFolder();
  const ended = await millrace(['pull', 'bulk-ops', '--out', out], { env, cwd: out });
  expect(ended.code, ended.stderr).toBe(0);
  const file = join(out, 'bulk_ops.ndjson');
  expect(await printedLoad(duckdb, await duckdb.open(), 'bulk_ops', [file, file])).toEqual([3, 3]);
});

async function* chunks(text: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
}

test('what tells such rows apart does not depend on how the text comes in', async () => {
  const text = Buffer.from(JSON.stringify(TIMES.map((time, n) => JSON.parse(sampleLine(time, n)) as object)));
  const shaped = async (size: number): Promise<string> => {
    let written = '';
    await shapeText(chunks(text, size), {
      tables: ['timeseries'],
      source: () => 'made up',
      write: async (_, rows) => void (written += rows.toString()),
      onReject: (reject) => expect.unreachable(JSON.stringify(reject)),
    });
    return written;
  };
  const whole = await shaped(text.length);
  expect(new Set(whole.match(/"_row_id":"[^"]+"/g))).toHaveProperty('size', 8);
  for (const size of [1, 7, 100]) expect(await shaped(size)).toBe(whole);
});

test.each(Object.keys(DIALECTS) as DialectName[])(
  'the statements of %s tell rows apart by it, in the load and in the view',
  (dialect) => {
    const { createView, load } = schemaOf(TABLES.entry('bulk_ops'), dialect);
    const parts = /PARTITION BY ([^)]*?)\n/s;
    for (const sql of [createView, load]) expect(parts.exec(sql ?? '')?.[1]).toContain('_row_id');
    expect(createView).toContain('_loaded_at');
  },
);
