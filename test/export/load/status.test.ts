import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { archived, mealEvent } from '../support.ts';
import { kindsOf, load, type LoadedDatabase, postgresServer } from './support.ts';

interface State {
  readonly ok: boolean;
  readonly tables: readonly Readonly<Record<string, unknown>>[];
  readonly files: number;
  readonly last_load: string | null;
  readonly folders: readonly Readonly<Record<string, unknown>>[];
}

async function statusOf(to: LoadedDatabase['to'], ...folders: readonly string[]) {
  const { code, stdout, stderr } = await millrace(['load', ...folders, ...to, '--status', '--json']);
  return { code, stderr, state: (stdout === '' ? null : JSON.parse(stdout)) as State | null };
}

/** What the database says of a table by a query of our own. */
async function countsOf(database: LoadedDatabase, table: string, received: string): Promise<string[]> {
  const iso =
    database.place.length > 1
      ? (of: string) => `to_char(${of}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
      : (of: string) => `strftime(${of}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ')`;
  const utc = database.place.length > 1 ? '' : `SET TimeZone = 'UTC'; `;
  return database.sql(
    `${utc}SELECT count(*), count(DISTINCT user_id), ${iso(`min(${received})`)}, ${iso(`max(${received})`)} FROM ${table}`,
  );
}

describe.each(kindsOf(postgresServer()))('load --status of $kind', ({ skip, make }) => {
  test.skipIf(skip)('shows what the database says itself, and which files are loaded', async () => {
    const database = await make();
    const events = [1, 2, 3].map((n) => ({
      ...mealEvent(n),
      receivedAt: Date.UTC(2026, 10, n, 1, 2, 3, 4 + n),
    }));
    const folder = await archived(events);
    const other = await archived([mealEvent(4)]);
    await load(folder, database, '--table', 'events', '--table', 'meals');
    const { code, state } = await statusOf(database.to, folder, other);
    expect(code).toBe(0);
    expect(state?.ok).toBe(true);
    expect(state?.tables.map(({ table }) => table)).toEqual(['events', 'meal_items', 'meals']);
    for (const [table, received] of [
      ['events', 'received_at'],
      ['meals', '_received_at'],
      ['meal_items', '_received_at'],
    ] as const) {
      const found = state?.tables.find((one) => one['table'] === table);
      const { rows, users, oldest_received_at, newest_received_at } = found ?? {};
      expect(await countsOf(database, table, received)).toEqual([
        [rows, users, oldest_received_at, newest_received_at].join('|'),
      ]);
      expect(newest_received_at).toBe('2026-11-03T01:02:03.007Z');
    }
    expect(state).toMatchObject({ files: 3, sinks: 0 });
    const [last] = await database.sql('SELECT max(loaded_at) FROM _millrace_loads');
    expect(Math.abs(Date.parse(state?.last_load ?? '') - Date.parse(last ?? ''))).toBeLessThan(1000);
    expect(state?.folders).toMatchObject([
      { folder, loaded: 3, not_loaded: 0 },
      { folder: other, loaded: 0, not_loaded: 1 },
    ]);
    const metrics = await millrace(['load', ...database.to, '--status', '--metrics']);
    const newest = Date.UTC(2026, 10, 3, 1, 2, 3, 7) / 1000;
    const series = ['events', 'meal_items', 'meals'].map(
      (table) => `millrace_table_newest_received_timestamp_seconds{table="${table}"} ${newest}`,
    );
    expect(metrics.stdout.trim().split('\n').slice(1)).toEqual([
      '# TYPE millrace_table_newest_received_timestamp_seconds gauge',
      ...series,
    ]);
    // The files of an archive that is loaded count as loaded from then on.
    await load(other, database);
    expect((await statusOf(database.to, other)).state?.folders).toMatchObject([{ loaded: 1, not_loaded: 0 }]);
    const { stdout } = await millrace(['load', folder, ...database.to, '--status']);
    expect(stdout).toMatch(/^meals +4 +\d/m);
    expect(stdout).toContain(`${folder}: 3 files loaded, 0 not yet`);
  });

  test.skipIf(skip)('names a table that was dropped, and ends with 3', async () => {
    const database = await make();
    const folder = await archived([mealEvent(1)]);
    await load(folder, database, '--table', 'events', '--table', 'meals');
    await database.sql('DROP VIEW meals_latest CASCADE; DROP TABLE meals CASCADE');
    const { code, state } = await statusOf(database.to, folder);
    expect({ code, ok: state?.ok }).toEqual({ code: 3, ok: false });
    expect(state?.tables).toContainEqual(
      expect.objectContaining({ table: 'meals', present: false, rows: 0 }),
    );
    const text = await millrace(['load', ...database.to, '--status']);
    expect(text.stdout).toMatch(/^meals +missing/m);
  });

  test.skipIf(skip)('what nothing was loaded into is an error with a name, and stays as it is', async () => {
    const database = await make();
    await database.sql('CREATE SCHEMA IF NOT EXISTS elsewhere; SELECT 1');
    const { code, stderr } = await statusOf(database.to);
    expect(code).toBe(2);
    expect(stderr).toContain('Nothing was loaded into the database');
    expect(stderr).toContain('has no table _millrace_loads and no table _millrace_tables');
    expect(
      await database.sql(
        `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name LIKE '_millrace%'`,
      ),
    ).toEqual(['0']);
  });
});

test('a file that is not there is not made, and another file is named', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'none.duckdb');
  expect(await statusOf(['--to', `duckdb:${file}`])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(file),
  });
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, 'no database');
  expect(await statusOf(['--to', `duckdb:${file}`])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(file),
  });
  rmSync(file);
});

test('--status goes with neither --follow nor --table, and a load needs a folder', async () => {
  const to = ['--to', 'duckdb:./made-up.duckdb'];
  for (const [more, said] of [
    [['--status', '--follow'], '--follow'],
    [['--metrics'], '--metrics needs --status'],
    [['--status', '--metrics', '--json'], '--json'],
    [['--status', '--table', 'meals'], 'take out --table'],
    [[], 'name an archive or a backfill'],
  ] as const)
    expect(await millrace(['load', ...to, ...more])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(said),
    });
});
