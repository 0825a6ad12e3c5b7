import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GatheredRows } from '../../src/export/gathered-rows.ts';
import { ParquetFile } from '../../src/export/parquet-file.ts';
import type { RowColumns } from '../../src/export/parquet/row-columns.ts';
import type { Compression } from '../../src/core/compression.ts';
import { Shaping } from '../../src/export/shaping.ts';
import { HashedFile } from '../../src/lib/new-file.ts';
import { boolean, date, decimal, integer, json, text, timestamp } from '../../src/tables/definition.ts';
import type { TableDefinition } from '../../src/tables/definition.ts';
import { Tables } from '../../src/tables/tables.ts';
import { temporaryFolder } from '../support/folders.ts';
import { duckdb, EVERYTHING } from './support.ts';

// What DuckDB reads from the Parquet file against what it reads from the rows it was made of.

const TABLE: TableDefinition = {
  // Made of events, as all that is exported.
  events: { types: ['made_up.'], member: 'data' },
  name: 'made_up',
  description: 'every type, often the same, always another, and seldom there',
  key: ['id'],
  columns: [
    text('id', '', { required: true }),
    text('few', ''),
    text('many', ''),
    text('late', ''),
    text('long', ''),
    text('never', ''),
    integer('whole', ''),
    decimal('exact', ''),
    decimal('few_exact', ''),
    boolean('flag', ''),
    date('day', ''),
    timestamp('moment', ''),
    json('rest', ''),
  ],
};

const NAMES = TABLE.columns.map(({ name }) => name);

const TYPES: Readonly<Record<string, string>> = {
  whole: 'BIGINT',
  exact: 'DECIMAL(38,18)',
  few_exact: 'DECIMAL(38,18)',
  flag: 'BOOLEAN',
  day: 'DATE',
  moment: 'TIMESTAMPTZ',
};

/** A row as NDJSON; numbers as text that a double could not hold. */
function rowOf(n: number): string {
  const at = new Date(Date.UTC(1960, 0, 1) + n * 987_654_321).toISOString();
  const members: (string | false)[] = [
    `"id":"id-${n}"`,
    `"few":"${['é', 'a\\"b', '', '😀', 'z'][n % 5]}"`,
    n % 3 !== 0 && `"many":"m${(n * 7919) % 100_003}"`,
    // Looks worth a dictionary until it does not.
    `"late":"${n < 3000 ? n % 10 : n}"`,
    n % 100 === 0 && `"long":"${'x'.repeat((n * 31) % 20_000)}"`,
    n % 2 === 0 && `"whole":${n % 7 === 0 ? '-9223372036854775808' : n * 12_345 - 99_999}`,
    `"exact":${n % 2 === 0 ? '' : '-'}${n * 7919}.${String(n).padStart(18, '0')}`,
    n % 10 > 2 && `"few_exact":${n % 4}.5`,
    n % 11 > 1 && `"flag":${n % 5 < 2}`,
    n % 50 === 0 && `"day":"${at.slice(0, 10)}"`,
    `"moment":"${at.replace('Z', '123Z')}"`,
    n % 9 === 0 && `"rest":{"n":${n},"t":"\\u0001"}`,
  ];
  return `{${members.filter((member) => member !== false).join(',')}}\n`;
}

/** A row value by value, as the shaper does it: what has escapes is marked by a negative end. */
function give(columns: RowColumns, row: string): void {
  for (const [, name, value = ''] of row.matchAll(/"(\w+)":("(?:[^"\\]|\\.)*"|\{[^}]*\}|[^,}]+)/g)) {
    const bytes = Buffer.from(`:${value},`);
    const to = bytes.length - 1;
    columns.value(
      NAMES.indexOf(name ?? ''),
      bytes,
      1,
      value.startsWith('"') && value.includes('\\') ? -to : to,
    );
  }
  columns.end();
}

async function written(
  rows: readonly string[],
  compression: Compression,
  pieces: number,
): Promise<{ parquet: string; ndjson: string }> {
  const folder = await temporaryFolder();
  const [parquet, ndjson] = [join(folder, 'rows.parquet'), join(folder, 'rows.ndjson')];
  const tables = new Tables([TABLE]);
  const selection = EVERYTHING;
  const terms = { tables, table: TABLE.name, partition: 'none', format: 'parquet', compression } as const;
  const shaping = new Shaping({ ...terms, selection });
  const gathered = new GatheredRows(terms);
  const file = new ParquetFile(
    () => HashedFile.create(parquet),
    TABLE,
    (parts) => shaping.join(TABLE.name, parts),
  );
  for (const [at, row] of rows.entries()) {
    give(gathered.of('').get(TABLE.name) as RowColumns, row);
    // As units of the archive end: some pieces are row groups of their own, the others are joined.
    if (at % pieces === 0 || at === rows.length - 1)
      for (const batch of gathered.take()) await file.add(batch);
    if (at % (pieces * 7) === 0) await file.relieve();
  }
  expect(file.rows).toBe(rows.length);
  await file.finish();
  // DuckDB would keep 17 digits of a number.
  writeFileSync(ndjson, rows.join('').replaceAll(/"(exact|whole)":([-\d.]+)/g, '"$1":"$2"'));
  return { parquet, ndjson };
}

function fromNdjson(path: string): string {
  const columns = NAMES.map((name) => `${name}: '${name === 'rest' ? 'JSON' : 'VARCHAR'}'`);
  const values = NAMES.map((name) => `CAST(${name} AS ${TYPES[name] ?? 'VARCHAR'}) AS ${name}`);
  return `SELECT ${values.join(', ')} FROM read_ndjson('${path}', columns = {${columns.join(', ')}})`;
}

function fromParquet(path: string): string {
  return `SELECT ${NAMES.map((name) => (name === 'rest' ? 'CAST(rest AS VARCHAR) AS rest' : name)).join(', ')} FROM read_parquet('${path}')`;
}

describe('a Parquet file holds the rows it was made of', () => {
  it.each([
    ['gzip', 3000, 997],
    ['zstd', 12_000, 3001],
    ['none', 3000, 3000],
    ['zstd', 1, 1],
    ['gzip', 12, 5],
  ] as const)('%s, %i rows', async (compression, count, pieces) => {
    const rows = Array.from({ length: count }, (_, n) => rowOf(n));
    const { parquet, ndjson } = await written(rows, compression, pieces);
    const sql = await duckdb();
    const [own, theirs] = [fromParquet(parquet), fromNdjson(ndjson)];
    expect(await sql(`SELECT count(*)::INT FROM (${own})`)).toEqual([[count]]);
    expect(await sql(`SELECT count(*)::INT FROM ((${own}) EXCEPT ALL (${theirs}))`)).toEqual([[0]]);
    // Row groups may be left out by their bounds, which must not leave out a row.
    for (const name of ['id', 'few', 'many', 'late', 'whole', 'day', 'moment', 'flag']) {
      const [least, greatest] = [
        `SELECT min(${name}) FROM (${theirs})`,
        `SELECT max(${name}) FROM (${theirs})`,
      ];
      const found = `SELECT count(*) > 0 FROM (${own}) WHERE`;
      if ((await sql(least))[0]?.[0] === null) continue;
      expect([name, await sql(`${found} ${name} = (${least})`)]).toEqual([name, [[true]]]);
      expect([name, await sql(`${found} ${name} = (${greatest})`)]).toEqual([name, [[true]]]);
    }
  });

  it('short numbers, which are long in pages: joined row groups have more than one page', async () => {
    const count = 200_000;
    const rows = Array.from({ length: count }, (_, n) => `{"id":"i","exact":${n}.5}\n`);
    const { parquet } = await written(rows, 'none', 90_000);
    const sql = await duckdb();
    expect(
      await sql(`SELECT count(*)::INT, sum(exact)::DOUBLE, count(DISTINCT exact)::INT FROM '${parquet}'`),
    ).toEqual([[count, (count * count) / 2, count]]);
    expect(await sql(`SELECT num_row_groups::INT FROM parquet_file_metadata('${parquet}')`)).toEqual([[3]]);
  });

  it('bounds and counts of nulls are those of the values', async () => {
    const rows = Array.from({ length: 5000 }, (_, n) => rowOf(n));
    const { parquet, ndjson } = await written(rows, 'zstd', 5000);
    const sql = await duckdb();
    for (const name of ['many', 'whole', 'day']) {
      expect([
        name,
        ...(await sql(
          `SELECT min(stats_min_value), max(stats_max_value), sum(stats_null_count)::INT FROM parquet_metadata('${parquet}') WHERE path_in_schema = '${name}'`,
        )),
      ]).toEqual([
        name,
        ...(await sql(
          `SELECT min(${name})::VARCHAR, max(${name})::VARCHAR, count_if(${name} IS NULL)::INT FROM (${fromNdjson(ndjson)})`,
        )),
      ]);
    }
  });
});
