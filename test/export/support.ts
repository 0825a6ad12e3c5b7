import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import type { ExportOptions, ExportSummary } from '../../src/export/options.ts';
import { runExport } from '../../src/export/run.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { filesSink, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';

const DAY = 86_400_000;

export interface MadeUpMeal {
  readonly id: string;
  readonly kcal: string;
  readonly foods: number;
}

/** A made-up meal event, its numbers as text that a double could not hold. */
export function mealEvent(n: number, changes: Partial<JournalEvent> = {}): JournalEvent {
  const { id, kcal, foods } = mealOf(n);
  const data = Array.from(
    { length: foods },
    (_, i) => `"Made up, ${i} \\"tbsp\\"":{"energy":{"value":${kcal}}}`,
  );
  const body =
    `{"event_type":"daily.data.meal.created","data":{"id":"${id}","user_id":"user-${n % 7}","name":"Meal\\n${n}",` +
    `"timestamp":"2026-01-0${(n % 9) + 1}T10:00:00.123456+02:00","source_id":9007199254740993,` +
    `"calendar_date":"2026-01-0${(n % 9) + 1}","never_seen":{"n":${kcal}},"data":{${data.join(',')}}},` +
    `"team_id":"team-1","user_id":"user-${n % 7}","client_user_id":null}`;
  const event = contractEvent(n, { body: Buffer.from(body) });
  return { ...event, receivedAt: event.receivedAt + (n % 3) * DAY, ...changes };
}

/** Those of these numbers, the last among them. */
export function mealEvents(from: number, to: number): JournalEvent[] {
  return Array.from({ length: to - from + 1 }, (_, n) => mealEvent(from + n));
}

export function mealOf(n: number): MadeUpMeal {
  return {
    id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    kcal: `${n}.100000000000000001`,
    foods: n % 4,
  };
}

/** A new archive of these events. @returns its folder */
export async function archived(events: readonly JournalEvent[], options: object = {}): Promise<string> {
  const path = await temporaryFolder();
  await archive(path, events, options);
  return path;
}

/** Adds events to an archive, in one finished file for each day. */
export async function archive(
  path: string,
  events: readonly JournalEvent[],
  options: object = {},
): Promise<void> {
  const { sink } = filesSink(path, options);
  await sink.open();
  const results = await sink.send(
    events.map((event) => ({ event, destination: null })),
    signal,
  );
  if (results.some(({ status }) => status !== 'delivered')) throw new Error('not delivered');
  await sink.close(signal);
}

export const EVERYTHING = { since: null, until: null, types: [], teams: [], users: [] };

/** An archive of these events, and an export of it: both grow as the test says. */
export async function exporting(
  events: readonly JournalEvent[],
  terms: Partial<ExportOptions> = {},
  options: object = {},
) {
  const [path, out] = [await archived(events, options), await temporaryFolder()];
  const run = (changes: Partial<ExportOptions> = {}) => exported([path], out, { ...terms, ...changes });
  return {
    path,
    out,
    /** Folder of its table. */
    table: join(out, terms.table ?? 'events'),
    run,
    /** More events come, and are exported. */
    grow: async (more: readonly JournalEvent[], changes: Partial<ExportOptions> = {}) => {
      await archive(path, more, options);
      return run(changes);
    },
    /** Files of rows, below the export's folder. */
    files: () => filesBelow(out, /part-/),
  };
}

/** Files below a folder whose path in it is like this, in order. */
export function filesBelow(folder: string, like: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => like.test(name))
    .sort();
}

export interface Exported extends ExportSummary {
  readonly messages: readonly string[];
}

export async function exported(
  paths: readonly string[],
  out: string,
  changes: Partial<ExportOptions> = {},
): Promise<Exported> {
  const messages: string[] = [];
  const summary = await runExport({
    paths,
    places: new Places(),
    out,
    tables: TABLES,
    table: 'events',
    format: 'parquet',
    compression: 'gzip',
    partition: 'dt',
    selection: EVERYTHING,
    stepBytes: 1024 * 1024,
    again: false,
    signal,
    onProgress: () => undefined,
    onProblem: (file, line, reason) => messages.push(`${file}:${line}: ${reason}`),
    onReject: ({ file, line, code }) => messages.push(`${file}:${line}: ${code}`),
    onUnknown: (table, path) => messages.push(`${table}: ${path}`),
    ...changes,
  });
  return { ...summary, messages };
}

/** Runs SQL on an in-memory database of the test's own, in UTC. */
export async function duckdb(): Promise<(sql: string) => Promise<unknown[][]>> {
  const connection: DuckDBConnection = await (await DuckDBInstance.create(':memory:')).connect();
  onTestFinished(() => connection.closeSync());
  await connection.run(`SET TimeZone = 'UTC'`);
  return async (sql) => (await connection.runAndReadAll(sql)).getRowsJson();
}
