import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { archived, duckdb } from '../export/support.ts';
import { SECRET } from '../support/signed-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { eventOf, printed } from './support.ts';

interface Reading {
  readonly id: string;
  readonly updated_at: string;
  readonly score: number | null;
  readonly source: { readonly provider: string };
  readonly stages: readonly { readonly from: string; readonly minutes: number }[];
  readonly foods?: Readonly<Record<string, { readonly kcal: number }>>;
}

const reading: fc.Arbitrary<Reading> = fc.record(
  {
    id: fc.uuid(),
    updated_at: fc.integer({ min: 0, max: 1e12 }).map((ms) => new Date(ms).toISOString()),
    score: fc.option(
      fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((n) => Math.round(n * 1000) / 1000 + 0),
    ),
    source: fc.record({ provider: fc.constantFrom('oura', 'garmin') }),
    stages: fc.array(fc.record({ from: fc.constantFrom('2026-01-01', '2026-01-02'), minutes: fc.nat(600) }), {
      maxLength: 4,
    }),
    foods: fc.dictionary(
      fc.nat(5).map((n) => `Made up, ${n} tbsp(s)`),
      fc.record({ kcal: fc.nat(900) }),
      { maxKeys: 3 },
    ),
  },
  { requiredKeys: ['id', 'updated_at', 'score', 'source', 'stages'] },
);

/** One that has everything, so that every column is learned. */
const whole: Reading = {
  id: '00000000-0000-4000-8000-000000000000',
  updated_at: '2026-01-01T00:00:00.000Z',
  score: 1.5,
  source: { provider: 'oura' },
  stages: [{ from: '2026-01-01', minutes: 1 }],
  foods: { 'Made up, 9 tbsp(s)': { kcal: 1 } },
};

const sumOf = (list: readonly number[]): number => list.reduce((sum, n) => sum + n, 0);

/** An archive of readings that no table knows, and of meals, that one does. */
async function readingsIn(readings: readonly Reading[]): Promise<string> {
  return archived([
    ...readings.map((one, n) => eventOf(n, `daily.data.reading.${n % 2 === 0 ? 'created' : 'updated'}`, one)),
    eventOf(9000, 'daily.data.meal.created', { id: 'm', name: 'meal' }),
  ]);
}

/** The archive's tables, learned, in a file. */
async function learned(path: string): Promise<string> {
  const file = join(await temporaryFolder(), 'tables.yaml');
  await printed(['schema', 'infer', path, '--out', file]);
  return file;
}

test('learned, exported and loaded: DuckDB has what the bodies say', async () => {
  const readings = [whole, ...fc.sample(reading, { numRuns: 120, seed: 7 })];
  const path = await readingsIn(readings);
  const file = await learned(path);
  const out = await temporaryFolder();
  const summary = JSON.parse(
    await printed(['export', path, '--tables', file, '--table', 'reading', '--out', out, '--json']),
  ) as Record<string, unknown>;
  const stages = readings.flatMap((one) => one.stages);
  const foods = readings.flatMap((one) => Object.entries(one.foods ?? {}));
  expect(summary).toMatchObject({
    ok: true,
    rows: { reading: readings.length, reading_stages: stages.length, reading_foods: foods.length },
    rejects: 0,
  });

  const sql = await duckdb();
  const from = (table: string): string =>
    `read_parquet('${out}/${table}/**/*.parquet', hive_partitioning = false)`;
  expect(await sql(`SELECT count(*) FROM ${from('reading')} WHERE extra IS NOT NULL`)).toEqual([['0']]);
  expect(
    await sql(
      `SELECT id, epoch_ms(updated_at)::DOUBLE, score::DOUBLE, source_provider FROM ${from('reading')} ORDER BY id, 2`,
    ),
  ).toEqual(
    readings
      .map((one) => [one.id, Date.parse(one.updated_at), one.score, one.source.provider])
      .sort((a, b) => (`${a[0]}` < `${b[0]}` ? -1 : 1)),
  );
  expect(await sql(`SELECT sum(minutes)::DOUBLE, count("from") FROM ${from('reading_stages')}`)).toEqual([
    [sumOf(stages.map(({ minutes }) => minutes)), String(stages.length)],
  ]);
  expect(
    await sql(`SELECT item_name, sum(kcal)::DOUBLE FROM ${from('reading_foods')} GROUP BY ALL ORDER BY 1`),
  ).toEqual(
    [...Map.groupBy(foods, ([name]) => name)]
      .map(([name, list]) => [name, sumOf(list.map(([, { kcal }]) => kcal))])
      .sort((a, b) => (`${a[0]}` < `${b[0]}` ? -1 : 1)),
  );

  for (const table of ['reading', 'reading_stages', 'reading_foods'])
    await sql(
      await printed(['schema', table, '--tables', file, '--dialect', 'duckdb', '--only', 'tables,views']),
    );
  await sql(`INSERT INTO reading BY NAME SELECT * FROM ${from('reading')}`);
  await sql(`INSERT INTO reading_stages BY NAME SELECT * FROM ${from('reading_stages')}`);
  expect(await sql('SELECT count(*) FROM reading_latest')).toEqual([[String(readings.length)]]);
  expect(await sql('SELECT count(*) FROM reading_stages_latest')).toEqual([[String(stages.length)]]);
});

test('ndjson takes a learned table', async () => {
  const path = await readingsIn([whole]);
  const file = await learned(path);
  const document = join(await temporaryFolder(), 'readings.json');
  writeFileSync(document, JSON.stringify([whole, { ...whole, score: null }]));
  const rows = await printed(['ndjson', document, '--tables', file, '--table', 'reading']);
  expect(rows.trimEnd().split('\n')).toHaveLength(2);
  expect(rows).toContain('"source_provider":"oura"');
});

test('only what no table takes is proposed, and what the file covers is no longer', async () => {
  const path = await readingsIn([whole]);
  const file = await learned(path);
  const { tables } = parse(readFileSync(file, 'utf8')) as { tables: { name: string; events: string[] }[] };
  expect(tables.map(({ name, events }) => [name, events])).toEqual([['reading', ['daily.data.reading.']]]);
  // Without --out the definitions go to stdout.
  expect(parse(await printed(['schema', 'infer', path]))).toMatchObject({
    version: 1,
    tables: [{ name: 'reading' }],
  });
  const again = JSON.parse(await printed(['schema', 'infer', path, '--tables', file, '--json'])) as object;
  expect(again).toMatchObject({ ok: true, records: 2, covered: 2, tables: [] });
  const all = JSON.parse(await printed(['schema', 'infer', path, '--all', '--json'])) as {
    tables: { name: string }[];
  };
  expect(all.tables.map(({ name }) => name)).toEqual(['meal', 'reading']);
  const some = JSON.parse(await printed(['schema', 'infer', path, '--type', 'raw.', '--json'])) as object;
  expect(some).toMatchObject({ tables: [] });
});

test('an odd event beside those of a table makes no table that would take them all', async () => {
  const samples = { source: { provider: 'oura' }, data: [{ timestamp: '2026-01-01T00:00:00Z', value: 1 }] };
  const path = await archived([
    eventOf(1, 'daily.data.steps.created', [{ id: 'odd' }]),
    eventOf(2, 'daily.data.steps.created', samples),
  ]);
  expect(JSON.parse(await printed(['schema', 'infer', path, '--json']))).toMatchObject({
    covered: 1,
    tables: [],
    without: [{ events: 'daily.data.steps.', count: 1, reason: 'a table takes other events of these types' }],
  });
});

test('a file that is there is not overwritten', async () => {
  const path = await readingsIn([whole]);
  const file = await learned(path);
  const before = readFileSync(file, 'utf8');
  const ended = await millrace(['schema', 'infer', path, '--out', file]);
  expect(ended).toMatchObject({ code: 2 });
  expect(ended.stderr).toContain('is there already');
  expect(readFileSync(file, 'utf8')).toBe(before);
});

test('tables in the config count as named with --tables', async () => {
  const path = await readingsIn([whole]);
  const folder = await temporaryFolder();
  const config = writeConfig(folder, { tables: [await learned(path)] });
  const out = join(folder, 'out');
  await printed(['export', path, '--config', config, '--table', 'reading', '--out', out]);
  expect(existsSync(join(out, 'reading'))).toBe(true);
  expect(await printed(['schema', '--config', config, '--dialect', 'duckdb'])).toContain('"reading_stages"');
});

test('check reads the files that tables: names', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'tables.yaml');
  const config = writeConfig(folder, { tables: [file] });
  const env = { MILLRACE_SECRET: SECRET };
  writeFileSync(file, 'version: 1\ntables: [{ name: meals, events: [a.], columns: [] }]\n');
  const wrong = await millrace(['check', '--config', config], { env });
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toContain('there are two tables meals');
  writeFileSync(file, 'version: 1\ntables: [{ name: readings, events: [a.], columns: [] }]\n');
  expect(await millrace(['check', '--config', config], { env })).toMatchObject({ code: 0 });
});

/** What is said of a file of definitions; of one that is not there, without a text. */
async function saidOf(text: string): Promise<string> {
  const file = join(await temporaryFolder(), 'tables.yaml');
  if (text !== '') writeFileSync(file, text);
  const { code, stderr } = await millrace(['schema', '--tables', file, '--dialect', 'duckdb']);
  expect([code, stderr]).toEqual([2, expect.stringContaining(file)]);
  return stderr.replaceAll(`${file}:`, 'tables.yaml:');
}

describe('a definition file that is wrong', () => {
  test.each([
    ['colums: []', 'tables[0].colums: is not a known key; did you mean columns?'],
    ['columns: [{ name: a, type: string }]', 'tables[0].columns[0].type:'],
    [`name: 'T"; DROP'`, 'tables[0].name: must be lower-case'],
    [String.raw`description: "a\n; DROP TABLE"`, 'tables[0].description: must be one line'],
    ['name: meals', 'there are two tables meals'],
    ['columns: [{ name: a, type: text, from: a1 }, { name: a, type: text, from: a2 }]', 'a is there already'],
    ['key: [b]', 'tables[0].key[0]: b is no column'],
    ['newest: a', 'tables[0].newest: a must be a column of type timestamp or date'],
    ['columns: [{ name: a, type: text }, { name: b, type: text, from: a.b }]', 'two columns read a'],
    ['columns: [{ name: user_id, type: integer }]', 'tables[0].columns[0].type: user_id must be a text'],
    [
      'nested: [{ at: l, each: array, name: n, columns: [{ name: x, type: text, from: { parent: no } }] }]',
      't has no column no',
    ],
  ])('%s', async (change, message) => {
    const usual = { name: 't', events: ['raw.t.'], columns: [{ name: 'a', type: 'text' }] };
    const table = { ...usual, ...(parse(change) as object) };
    expect(await saidOf(JSON.stringify({ version: 1, tables: [table] }))).toContain(message);
  });

  test('no YAML, and no file', async () => {
    await saidOf('');
    expect(await saidOf('tables: [}')).toContain('tables.yaml:1:');
  });
});
