import { spawnSync } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { columnsOf, type TableDefinition } from '../../src/tables/definition.ts';
import { schemaOf } from '../../src/tables/sql/schema.ts';
import { TABLES, Tables } from '../../src/tables/tables.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { printed } from './support.ts';
import { runAll, WAREHOUSES } from './warehouses.ts';

/** The meals of a version before: without some columns, in the documents and in what is nested in them. */
function before(): Tables {
  const MEALS = TABLES.get('meals')!.definition;
  const less = (table: TableDefinition): TableDefinition => ({
    ...table,
    columns: table.columns.filter(({ name }) => !/^(vitamins|minerals|source)_/.test(name)),
    nested: (table.nested ?? []).map((one) => ({ ...one, table: less(one.table) })),
  });
  return new Tables([less(MEALS)]);
}

/** The description of a column that an upgrade adds. */
const COMMENT = {
  duckdb: `SELECT comment FROM duckdb_columns() WHERE table_name = 'meals' AND column_name = 'source_name'`,
  postgres: `SELECT col_description(attrelid, attnum) FROM pg_attribute
    WHERE attrelid = 'meals'::regclass AND attname = 'source_name'`,
  clickhouse: `SELECT comment FROM system.columns WHERE table = 'meals' AND name = 'source_name'`,
};

describe.each(WAREHOUSES)('$title', ({ dialect, lack, open }) => {
  test.skipIf(lack !== null)(
    `schema --upgrade completes tables of an earlier version, keeps their rows, and makes what is not there${skipped(lack)}`,
    async () => {
      const warehouse = await open();
      const old = [...before().values()].map((entry) => schemaOf(entry, dialect));
      const made = old.flatMap(({ createTable, createIndexes, createView }) => [
        createTable,
        createIndexes,
        createView,
      ]);
      await runAll(dialect, warehouse, made.filter((sql) => sql !== null).join('\n'));
      const day = `'2026-11-21 00:00:00'`;
      await warehouse.run(
        `INSERT INTO meals (id, updated_at, _received_at, _loaded_at) VALUES ('a', ${day}, ${day}, ${day})`,
      );
      const upgrade = await printed(['schema', '--dialect', dialect, '--upgrade']);
      for (let times = 0; times < 2; times += 1) await runAll(dialect, warehouse, upgrade);
      for (const table of ['meals', 'meal_items', 'sleep']) {
        const names = columnsOf(TABLES.get(table)!.definition).map(({ name }) => `"${name}"`);
        const rows = await warehouse.rows(`SELECT ${names.join(', ')} FROM ${table}`);
        expect([table, rows.length]).toEqual([table, table === 'meals' ? 1 : 0]);
      }
      expect(await warehouse.rows('SELECT id, source_name FROM meals_latest')).toEqual([['a', '']]);
      expect(await warehouse.rows(COMMENT[dialect])).toEqual([['name of the provider, older data']]);
    },
  );

  test.skipIf(lack !== null)(
    `schema --erase removes the rows of a user's events, also if their documents name another user${skipped(lack)}`,
    async () => {
      const warehouse = await open();
      await runAll(dialect, warehouse, await printed(['schema', '--dialect', dialect, '--only', 'tables']));
      const day = `'2026-11-21 00:00:00'`;
      const event = (id: string, user: string): string =>
        `('${id}', 'webhooks', ${day}, 'daily.data.meal.created', '${user}', '{}', ${day})`;
      await warehouse.run(
        `INSERT INTO events (id, source, received_at, event_type, user_id, headers, _loaded_at)
         VALUES ${event('e1', 'gone')}, ${event('e2', 'kept')}, ${event('e3', 'kept')}`,
      );
      const row = (id: string, of: string, user: string): string =>
        `('${id}', '${of}', '${user}', ${day}, ${day})`;
      await warehouse.run(
        `INSERT INTO meals (id, _event_id, user_id, _received_at, _loaded_at)
         VALUES ${row('other', 'e1', 'kept')}, ${row('own', 'e2', 'gone')}, ${row('left', 'e3', 'kept')}`,
      );
      await runAll(dialect, warehouse, await printed(['schema', '--dialect', dialect, '--erase', 'gone']));
      expect(await warehouse.rows('SELECT id FROM meals ORDER BY 1')).toEqual([['left']]);
      expect(await warehouse.rows('SELECT id FROM events ORDER BY 1')).toEqual([['e2'], ['e3']]);
    },
  );

  test.skipIf(lack !== null)(
    `schema --erase removes a user from the tables of pulls${skipped(lack)}`,
    async () => {
      const warehouse = await open();
      await runAll(dialect, warehouse, await printed(['schema', '--dialect', dialect, '--only', 'tables']));
      const day = `'2026-11-21 00:00:00'`;
      const erase = async (...options: string[]): Promise<void> =>
        runAll(dialect, warehouse, await printed(['schema', '--dialect', dialect, ...options]));
      // The tables of pulls are made where they are missing.
      await erase('--erase', 'gone');
      const ofLoads = dialect === 'clickhouse' ? [] : ['_millrace_pulls'];
      for (const table of ['_millrace_whole_pulls', ...ofLoads]) {
        const [first, name] = table === '_millrace_pulls' ? ['load', '"table"'] : ['pull', 'of_table'];
        const row = (n: number, user: string): string => `('${n}', '${user}', 'meal', 'meals', ${day})`;
        await warehouse.run(
          `INSERT INTO ${table} (${first}, user_id, resource, ${name}, began_at)
           VALUES ${row(1, 'gone')}, ${row(2, 'known')}, ${row(3, 'kept')}`,
        );
      }
      await warehouse.run(
        `INSERT INTO events (id, user_id, client_user_id, received_at, headers, _loaded_at)
         VALUES ('e1', 'known', 'client-1', ${day}, '{}', ${day})`,
      );
      await erase('--erase', 'gone');
      await erase('--erase', 'client-1', '--client-user');
      for (const table of ['_millrace_whole_pulls', ...ofLoads])
        expect(await warehouse.rows(`SELECT user_id FROM ${table}`)).toEqual([['kept']]);
      expect(await warehouse.rows('SELECT id FROM events')).toEqual([]);
    },
  );
});

test('what cannot be repeated is not printed as an upgrade', async () => {
  expect(await printed(['schema', 'meals', '--dialect', 'redshift', '--upgrade'])).not.toContain(
    'ALTER TABLE',
  );
  expect(await printed(['schema', 'meals', '--dialect', 'snowflake', '--upgrade'])).toContain(
    'ADD COLUMN IF NOT EXISTS',
  );
});

const lack = lacksPostgres();

test.skipIf(lack !== null)(
  `psql has nothing to say of tables that are there already${skipped(lack)}`,
  async () => {
    const server = Postgres.start();
    onTestFinished(() => server.stop());
    const input = await printed(['schema', '--dialect', 'postgres', '--only', 'tables,views']);
    for (let times = 0; times < 2; times += 1) {
      const { status, stderr } = spawnSync('psql', [server.url, '-q', '-v', 'ON_ERROR_STOP=1'], {
        input,
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([0, '']);
    }
  },
);
