import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { DIALECTS, type DialectName } from '../../src/tables/sql/dialects/registry.ts';
import { schemaOf, type SchemaOptions, type TableSchema } from '../../src/tables/sql/schema.ts';
import { notePulls, WHOLE_PULLS } from '../../src/tables/sql/vanished.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { duckdb } from '../export/support.ts';
import { millrace } from '../support/millrace.ts';
import { blocksOf } from '../support/markdown.ts';
import { lacksWorking, skipped } from '../support/requirements.ts';
import { PYTHON } from './warehouses.ts';

const NAMES = Object.keys(DIALECTS) as DialectName[];

const PLACES: Readonly<Record<DialectName, string>> = {
  bigquery: 'gs://bucket/',
  snowflake: '@stage/',
  redshift: 's3://bucket/',
  databricks: '/Volumes/a/b/c/',
  clickhouse: 'https://bucket.s3.amazonaws.com/',
  postgres: './export/',
  duckdb: './export/',
};

/** Every kind of file that an export writes, as file, folder and day. */
function loadsOf(dialect: DialectName, table: string): { name: string; sql: string }[] {
  const base = `${PLACES[dialect]}${table}/`;
  const entry = TABLES.get(table)!;
  const made = (name: string, from: string, options: SchemaOptions = {}): { name: string; sql: string } => {
    return { name, sql: schemaOf(entry, dialect, from, options).load };
  };
  const kinds = dialect === 'postgres' ? [] : [['parquet', 'gzip', '.parquet'] as const];
  return [
    ...kinds,
    ['ndjson', 'gzip', '.ndjson.gz'] as const,
    ...(dialect === 'bigquery' ? [] : [['ndjson', 'zstd', '.ndjson.zst'] as const]),
    ['ndjson', 'none', '.ndjson'] as const,
  ].flatMap(([format, compression, extension]) => [
    made(`a file ${extension}`, `${base}dt=2026-11-21/part-000001${extension}`),
    made(`a folder ${extension}`, base, { format: { format, compression } }),
    made(`a day ${extension}`, `${base}dt=2026-11-21/`, { format: { format, compression }, replace: true }),
  ]);
}

function statementsOf(schema: TableSchema): string[] {
  const {
    createTable,
    createIndexes,
    describe: described,
    createView,
    load,
    vanished,
    upgrade,
    erase,
    eraseByEvent,
  } = schema;
  return [
    createTable,
    createIndexes,
    described,
    createView,
    load,
    vanished,
    upgrade,
    erase,
    eraseByEvent,
  ].filter((sql) => sql !== null);
}

/** Whole pulls, of which the values need quotes or are missing. */
const PULLS = ["o'hara\\", 'user-2'].map((user_id, n) => ({
  user_id,
  resource: 'meal',
  table: 'meals',
  provider: n === 0 ? null : 'made_up',
  since: n === 0 ? null : '2026-01-01',
  until: n === 0 ? null : '2026-02-01T00:00:00.000Z',
  began_at: '2026-11-20T06:00:00.123Z',
}));

const lack = lacksWorking('sqlglot (pip install sqlglot)', PYTHON, ['-c', 'import sqlglot']);

/** Statements that sqlglot takes as one text, because it knows only their first word. */
const WHOLE = new Set(['ALTER', 'BEGIN', 'COPY', 'LOAD', 'SET', 'ANALYZE']);

/** Of different kinds: a record, a document, rows inside one, one without a key, one without events. */
const LOADED = new Set(['events', 'meals', 'meal_items', 'insurance', 'markers']);

describe.each(NAMES)('%s', (dialect) => {
  test.skipIf(lack !== null)(`sqlglot reads every statement${skipped(lack)}`, () => {
    const cases = [...TABLES.values()].flatMap((entry) => {
      const table = entry.definition.name;
      const schema = schemaOf(entry, dialect, undefined, { users: { ids: ["o'hara\\"], column: 'user_id' } });
      const plain = statementsOf(schema).map((sql, n) => ({ name: `${table}: part ${n}`, sql }));
      const day = schemaOf(entry, dialect, undefined, { eraseDay: '2026-11-21' }).erase ?? '';
      const loads = (LOADED.has(table) ? loadsOf(dialect, table) : []).map(({ name, sql }) => ({
        name: `${table}: ${name}`,
        sql,
      }));
      return [...plain, { name: `${table}: erase a day`, sql: day }, ...loads];
    });
    const pulls = { definition: WHOLE_PULLS, document: WHOLE_PULLS };
    cases.push({ name: 'table of pulls', sql: schemaOf(pulls, dialect).createTable });
    const noted = notePulls(PULLS, DIALECTS[dialect]);
    cases.push({ name: 'pulls', sql: noted });
    const guide = dialect === 'bigquery' ? blocksOf('docs/warehouse.md') : [];
    const merges = guide
      .filter(({ text }) => text.startsWith('MERGE'))
      .map(({ text: sql }) => ({ name: sql, sql }));
    expect(merges).toHaveLength(dialect === 'bigquery' ? 2 : 0);
    cases.push(...merges);
    const input = JSON.stringify(cases.map((one) => ({ dialect, ...one })));
    const { stdout, stderr, status } = spawnSync(PYTHON, [join(import.meta.dirname, 'parse.py')], {
      input,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    expect(status, stderr).toBe(0);
    const found = JSON.parse(stdout) as { name: string; error?: string; whole?: string[] }[];
    expect(found).toHaveLength(cases.length);
    expect(found.filter(({ error }) => error !== undefined).slice(0, 3)).toEqual([]);
    const whole = new Set(found.flatMap((one) => one.whole ?? []));
    // CREATE … ON COMMIT DROP and DO, which PostgreSQL itself is asked in the tests beside.
    const known = dialect === 'postgres' ? new Set([...WHOLE, 'CREATE', 'DO']) : WHOLE;
    expect([...whole].filter((word) => !known.has(word))).toEqual([]);
  });

  test('a client that ends statements at every semicolon gets whole ones', () => {
    for (const entry of TABLES.values()) {
      const schema = schemaOf(entry, dialect);
      for (const sql of [
        ...statementsOf(schema),
        ...loadsOf(dialect, entry.definition.name).map((one) => one.sql),
      ]) {
        const lines = sql.split('\n');
        expect(lines.filter((line) => line.includes(';') && !line.endsWith(';'))).toEqual([]);
        expect(lines.filter((line) => line.includes('--') && line.endsWith(';'))).toEqual([]);
      }
    }
  });

  test('a new table says how its rows are divided and sorted', () => {
    const { createTable, createIndexes } = schemaOf(TABLES.get('meals')!, dialect);
    const keys: Readonly<Record<DialectName, RegExp>> = {
      bigquery:
        /PARTITION BY DATE\(`_received_at`\)\nCLUSTER BY `user_id`, `id`\nOPTIONS \(description = '.*'\);$/,
      snowflake: /CLUSTER BY \(TO_DATE\(_received_at\), user_id\)\nCOMMENT = '.*';$/,
      redshift: /DISTKEY \("user_id"\)\nCOMPOUND SORTKEY \("_received_at", "user_id", "id"\);$/,
      databricks: /USING DELTA\nCLUSTER BY \(`_received_at`, `user_id`, `id`\)\nCOMMENT '.*';$/,
      clickhouse:
        /ENGINE = MergeTree\nPARTITION BY toYYYYMM\(`_received_at`\)\nORDER BY \(`user_id`, `id`, `_received_at`\)\n.*\nCOMMENT '.*';$/,
      postgres:
        /CREATE INDEX IF NOT EXISTS "meals_on_event" ON "meals" \(hashtextextended\("_event_id", 0\)\);/,
      duckdb: /\);$/,
    };
    expect(`${createTable}${createIndexes ?? ''}`).toMatch(keys[dialect]);
  });

  test('without a table all of them are printed, each view after the one it needs', async () => {
    const { code, stdout } = await millrace(['schema', '--dialect', dialect, '--only', 'tables,views']);
    expect(code).toBe(0);
    const quoted = (name: string): string => DIALECTS[dialect].quote(name);
    let last = -1;
    for (const name of TABLES.keys()) {
      const at = stdout.indexOf(`CREATE TABLE IF NOT EXISTS ${quoted(name)} (`);
      expect(at, name).toBeGreaterThan(last);
      last = at;
    }
  });
});

function loadOf(dialect: DialectName, from: string): string {
  return schemaOf(TABLES.get('meals')!, dialect, from).load;
}

test('Redshift and PostgreSQL unpack what an export has packed', () => {
  expect(loadOf('redshift', 's3://b/part-000001.ndjson.gz')).toMatch(/FORMAT AS JSON 'auto'\nGZIP/);
  expect(loadOf('redshift', 's3://b/part-000001.ndjson.zst')).toMatch(/FORMAT AS JSON 'auto'\nZSTD/);
  expect(loadOf('redshift', 's3://b/part-000001.parquet')).toMatch(/FORMAT AS PARQUET/);
  expect(loadOf('postgres', "/a b/o'neil.ndjson.gz")).toContain(
    `FROM PROGRAM 'zcat < ''/a b/o''\\''''neil.ndjson.gz''' WITH`,
  );
  expect(() => loadOf('bigquery', 'gs://b/part-000001.ndjson.zst')).toThrow('--compress gzip');
  expect(() => loadOf('postgres', './part-000001.parquet')).toThrow('PostgreSQL reads no Parquet');
});

test('schema --dbt names columns and expressions that the tables have', async () => {
  const { code, stdout } = await millrace(['schema', '--dialect', 'duckdb', '--dbt']);
  expect(code).toBe(0);
  const { sources } = parse(stdout) as { sources: { tables: DbtTable[] }[] };
  const tables = sources[0]?.tables ?? [];
  const bases = tables.filter((one) => one.loaded_at_field !== undefined);
  expect(bases.map(({ name }) => name)).toEqual([...TABLES.keys()]);
  const fresh = bases.filter(({ freshness }) => freshness !== null);
  expect(fresh.map(({ name }) => name)).toEqual(TABLES.ofEvents().map(({ definition }) => definition.name));
  expect(new Set(fresh.map((one) => one.loaded_at_field))).toEqual(new Set(['_received_at']));
  const sql = await duckdb();
  for (const entry of TABLES.values()) {
    const { createTable, describe: described, createView } = schemaOf(entry, 'duckdb');
    for (const statement of [createTable, described, createView])
      if (statement !== null) await sql(statement);
  }
  for (const { name, loaded_at_field: field, data_tests: tests = [], columns } of tables) {
    const names = columns.map((column) => `"${column.name}"`);
    await sql(
      `SELECT ${[...names, ...(field === undefined ? [] : [`max(${field})`])].join()} FROM ${name} GROUP BY ALL`,
    );
    expect([name, tests.length]).toEqual([name, field === undefined ? 1 : 0]);
    for (const { unique } of tests)
      expect(await sql(`SELECT ${unique.column_name} FROM ${name} GROUP BY 1 HAVING count(*) > 1`)).toEqual(
        [],
      );
  }
  expect(tables.flatMap((one) => one.columns).every(({ description }) => description !== '')).toBe(true);
  const required = bases
    .find(({ name }) => name === 'meals')
    ?.columns.filter((one) => one.data_tests !== undefined);
  expect(required?.map(({ name }) => name)).toEqual(['id', '_loaded_at']);
});

interface DbtTable {
  readonly name: string;
  readonly loaded_at_field?: string;
  readonly freshness?: object | null;
  readonly data_tests?: { readonly unique: { readonly column_name: string } }[];
  readonly columns: { readonly name: string; readonly description: string; readonly data_tests?: string[] }[];
}
