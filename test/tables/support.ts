import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { schemaOf } from '../../src/tables/sql/schema.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { duckdb, exported, type Exported, archived } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { jsonLines } from '../support/json-lines.ts';

export type Row = Readonly<Record<string, unknown>>;

/** What a command prints that ends well. */
export async function printed(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await millrace(args);
  expect(code, `${args.join(' ')}: ${stderr}`).toBe(0);
  return stdout;
}

/** A made-up event with this data, received so many milliseconds after the first. */
export function eventOf(
  n: number,
  type: string,
  data: unknown,
  user: string | null = 'user-1',
): JournalEvent {
  const clientUser = `client "${n}"`;
  const body = { event_type: type, data, team_id: 'team-1', user_id: user, client_user_id: clientUser };
  return contractEvent(n, { type, user, clientUser, body: Buffer.from(JSON.stringify(body)) });
}

/** What an export of these events to a table gives. */
export async function exportOf(
  events: readonly JournalEvent[],
  table: string,
): Promise<Exported & { readonly all: Readonly<Record<string, readonly Row[]>> }> {
  const [path, out] = [await archived(events), await temporaryFolder()];
  const done = await exported([path], out, { table, format: 'ndjson', partition: 'none' });
  return { ...done, all: rowsIn(out) };
}

/** The rows of an export to NDJSON, by table. */
export function rowsIn(out: string): Record<string, Row[]> {
  const all: Record<string, Row[]> = {};
  for (const name of readdirSync(out, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!name.endsWith('.ndjson.gz')) continue;
    const table = name.split('/')[0] ?? '';
    all[table] = [...(all[table] ?? []), ...jsonLines<Row>(gunzipSync(readFileSync(join(out, name))))];
  }
  return all;
}

/** The events in DuckDB: the table, those nested in it, and their views. */
export async function loaded(
  events: readonly JournalEvent[],
  ...tables: readonly string[]
): Promise<(sql: string) => Promise<unknown[][]>> {
  const path = await archived(events);
  const sql = await duckdb();
  for (const table of tables) {
    const out = await temporaryFolder();
    await exported([path], out, { table });
    for (const name of TABLES.withNested(table)) {
      const { createTable, createView } = schemaOf(TABLES.get(name)!, 'duckdb');
      await sql(createTable);
      if (createView !== null) await sql(createView);
      if (!readdirSync(out).includes(name)) continue;
      const files = `read_parquet('${out}/${name}/**/*.parquet', hive_partitioning = false)`;
      await sql(`INSERT INTO ${name} BY NAME SELECT * FROM ${files}`);
    }
  }
  return sql;
}
