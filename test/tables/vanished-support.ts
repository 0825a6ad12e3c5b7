import { join } from 'node:path';
import { expect } from 'vitest';
import { type eventsOf } from '../export/load/backfills.ts';
import { archived } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { runAll, type RunningDialect, type Warehouse } from './warehouses.ts';

/** What `millrace schema` prints for these options. */
async function sqlOf(dialect: string, ...options: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await millrace(['schema', '--dialect', dialect, ...options]);
  expect(code, stderr).toBe(0);
  return stdout;
}

export async function ids(warehouse: Warehouse, sql: string): Promise<string[]> {
  return (await warehouse.rows(sql)).map(([id]) => id ?? '');
}

/** How a warehouse is filled by what `millrace schema` prints. */
export function fillingOf({ dialect, format, open }: RunningDialect) {
  /** A new one with the tables of meals. */
  const made = async (): Promise<Warehouse> => {
    const warehouse = await open();
    for (const table of ['meals', 'meal_items'])
      await runAll(dialect, warehouse, await sqlOf(dialect, table, '--only', 'tables,views'));
    return warehouse;
  };
  const load = async (warehouse: Warehouse, kind: string, folder: string): Promise<void> =>
    runAll(dialect, warehouse, await sqlOf(dialect, kind, folder));
  /** An export of an archive with these events. */
  const exported = async (events: ReturnType<typeof eventsOf>): Promise<string> => {
    const out = join(await temporaryFolder(), 'export');
    const options = ['--out', out, '--table', 'meals', '--format', format];
    expect(await millrace(['export', await archived(events), ...options])).toMatchObject({ code: 0 });
    return out;
  };
  return { made, load, exported };
}
