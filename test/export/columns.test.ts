import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { backfillOf } from './load/backfills.ts';
import { inDuckDB, kindsOf, load, postgresServer } from './load/support.ts';
import { archived, duckdb, mealEvents } from './support.ts';

/** What is there whatever is named. */
const KEPT = {
  meals: ['id', 'calendar_date', 'timestamp', 'updated_at', 'source_provider', 'source_slug'],
  meal_items: ['meal_id', 'meal_updated_at', 'item_index'],
};
const SYSTEM = [
  '_event_id',
  '_event_type',
  '_received_at',
  'team_id',
  'user_id',
  'client_user_id',
  '_loaded_at',
];

function exportOf(archive: string, out: string, ...more: readonly string[]) {
  return millrace(['export', archive, '--out', out, ...more]);
}

/** The columns, sorted, and the rows with the named ones, of the files of a table. */
async function foundIn(files: string, names: readonly string[]) {
  const sql = await duckdb();
  const read = `read_parquet('${files}')`;
  const columns = await sql(`SELECT column_name FROM (DESCRIBE SELECT * FROM ${read}) ORDER BY 1`);
  const rows = await sql(`SELECT ${names.join()} FROM ${read} ORDER BY ALL`);
  return { columns: columns.map((row) => String(Object.values(row as object)[0])), rows };
}

describe('export --columns', () => {
  test.each([
    ['meals', ['name', 'source_id']],
    ['meal_items', ['name']],
    ['events', ['team_id']],
  ] as const)('has of %s these columns, with the values that all have', async (table, names) => {
    const archive = await archived(mealEvents(1, 40));
    const [all, some] = [await temporaryFolder(), await temporaryFolder()];
    const columns = ['--columns', names.join(' , ')];
    expect(await exportOf(archive, join(all, 'x'), '--table', table)).toMatchObject({ code: 0 });
    expect(await exportOf(archive, join(some, 'x'), '--table', table, ...columns)).toMatchObject({ code: 0 });
    const files = join('x', table, '*', '*.parquet');
    const [wide, narrow] = [await foundIn(join(all, files), names), await foundIn(join(some, files), names)];
    expect(narrow.rows.length).toBeGreaterThan(0);
    if (table !== 'events') {
      expect(narrow.columns.filter((name) => name !== 'dt' && name !== '_row_id')).toEqual(
        [...new Set([...names, ...KEPT[table], ...SYSTEM])].toSorted(),
      );
      // No table that lies inside it.
      expect(globSync(join(some, 'x', 'meal*'))).toEqual([join(some, 'x', table)]);
    }
    expect(narrow.columns).not.toContain('extra');
    const both = narrow.columns.map((name) => `"${name}"`);
    expect((await foundIn(join(some, files), both)).rows).toEqual(
      (await foundIn(join(all, files), both)).rows,
    );
    expect(wide.columns.length).toBeGreaterThan(narrow.columns.length);
  });

  test('a Delta table has them in its schema and its files', async () => {
    const out = join(await temporaryFolder(), 'x');
    const options = ['--table', 'meals', '--format', 'delta', '--columns', 'name'];
    expect(await exportOf(await archived(mealEvents(1, 9)), out, ...options)).toMatchObject({ code: 0 });
    const log = readFileSync(join(out, 'meals', '_delta_log', `${'0'.repeat(20)}.json`), 'utf8').trim();
    const lines = log.split('\n').map((line) => JSON.parse(line) as { metaData?: { schemaString: string } });
    const schema = lines.flatMap(({ metaData }) => metaData?.schemaString ?? [])[0] ?? '{}';
    const { fields } = JSON.parse(schema) as { fields: { name: string }[] };
    const names = fields.map((field) => field.name).toSorted();
    expect(names.filter((name) => name !== 'dt')).toEqual(['name', ...KEPT.meals, ...SYSTEM].toSorted());
    const { columns, rows } = await foundIn(join(out, 'meals', '*', '*.parquet'), ['name']);
    expect({ columns: columns.filter((name) => name !== 'dt'), rows: rows.length }).toEqual({
      columns: names.filter((name) => name !== 'dt'),
      rows: 9,
    });
  });

  test('lines have them too, and the same command continues', async () => {
    const [archive, out] = [await archived(mealEvents(1, 9)), join(await temporaryFolder(), 'x')];
    const options = ['--table', 'meals', '--format', 'ndjson', '--columns', 'name'];
    for (let n = 0; n < 2; n += 1)
      expect(await exportOf(archive, out, ...options)).toMatchObject({ code: 0 });
    const lines = globSync(join(out, 'meals', '*', '*.gz')).flatMap((file) =>
      gunzipSync(readFileSync(file)).toString().trimEnd().split('\n'),
    );
    const names = new Set(lines.flatMap((line) => Object.keys(JSON.parse(line) as object)));
    expect(lines).toHaveLength(9);
    expect([...names].filter((name) => ![...KEPT.meals, ...SYSTEM].includes(name))).toEqual(['name']);
    const other = await exportOf(archive, out, ...options.slice(0, -1), 'energy_value');
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('columns name;') as string });
  });

  test.each([
    [['--table', 'meals', '--columns', 'nane'], 'meals has no column nane; there is name'],
    [['--table', 'meals', '--columns', 'zzzzzzzzzzzz'], 'meals has no column zzzzzzzzzzzz\n'],
    [['--table', 'meals', '--table', 'events', '--columns', 'id'], '--columns needs one table'],
    [['--table', 'all', '--columns', 'id'], '--columns needs one table'],
  ])('%j is refused', async (options, said) => {
    const out = join(await temporaryFolder(), 'x');
    const found = await exportOf(await archived(mealEvents(1, 1)), out, ...options);
    expect(found).toMatchObject({ code: 2, stderr: expect.stringContaining(said) as string });
  });
});

describe.each(kindsOf(postgresServer()))('load --columns into $kind', ({ skip, make }) => {
  const columnsIn = `SELECT column_name FROM information_schema.columns
    WHERE table_name = 'meals' AND table_schema = current_schema() AND column_name IN ('name', 'energy_value', 'extra', 'id')
    ORDER BY 1`;

  test.skipIf(skip)(
    'makes a table with them; one without it adds the others; fewer are refused',
    async () => {
      const [archive, database] = [await archived(mealEvents(1, 9)), await make()];
      const named = ['--table', 'meals', '--columns'];
      expect(await load(archive, database, ...named, 'name')).toMatchObject({
        summary: { rows: { meals: 9 } },
      });
      expect(await database.sql(columnsIn)).toEqual(['id', 'name']);
      expect(await database.sql('SELECT count(name), count(DISTINCT id) FROM meals_latest')).toEqual(['9|9']);
      expect(await load(archive, database, ...named, 'name')).toMatchObject({
        summary: { files: 0, before: 3 },
      });
      expect(await load(archive, database, '--table', 'meals')).toMatchObject({ code: 0 });
      expect(await database.sql(columnsIn)).toEqual(['energy_value', 'extra', 'id', 'name']);
      expect(await database.sql('SELECT count(extra), count(name) FROM meals_latest')).toEqual(['9|9']);
      const { code, stderr } = await load(archive, database, ...named, 'name');
      expect({ code, stderr }).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('would lose their values: ') as string,
      });
      expect(await database.sql('SELECT count(extra) FROM meals')).toEqual(['9']);
    },
  );

  test.skipIf(skip)(
    'of the folder of a backfill, whose whole pulls still remove what has vanished',
    async () => {
      const database = await make();
      const meals = ['m-1', 'm-2', 'm-3'].map((id) => ({ id }));
      const pulls = [{ user_id: 'user-1' }];
      const named = ['--table', 'meals', '--columns', 'source_app'];
      await load(await backfillOf(meals, pulls, '2026-11-10T00:00:00.000Z'), database, ...named);
      const energy = `SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema()
      AND table_name = 'meals' AND column_name = 'energy_value'`;
      expect(await database.sql(energy)).toEqual(['0']);
      const later = await backfillOf(meals.slice(1), pulls, '2026-11-20T00:00:00.000Z');
      expect(await load(later, database, ...named)).toMatchObject({ code: 0, summary: { problems: 0 } });
      const rows = 'SELECT id, calendar_date, source_provider FROM meals ORDER BY id';
      expect(await database.sql(rows)).toEqual(['m-2|2026-01-05|made_up', 'm-3|2026-01-05|made_up']);
    },
  );
});

test('load --columns of several tables is refused', async () => {
  const database = inDuckDB(join(await temporaryFolder(), 'none.duckdb'));
  for (const tables of [[], ['--table', 'all'], ['--table', 'meals', '--table', 'events']])
    expect(await load('made-up', database, ...tables, '--columns', 'id')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--columns needs one table') as string,
    });
});
