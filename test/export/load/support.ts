import { DuckDBInstance } from '@duckdb/node-api';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { SendResult } from '../../../src/core/sink.ts';
import { parseOptions } from '../../../src/sinks/postgres/config.ts';
import { createSink } from '../../../src/sinks/postgres/sink.ts';
import { makeContext, signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { lacksPostgres, Postgres } from '../../support/postgres.ts';
import { skipped } from '../../support/requirements.ts';

/** A server for a file of tests, and a new schema for each that asks. */
export function postgresServer() {
  const lack = lacksPostgres();
  let server: Postgres;
  let schemas = 0;
  beforeAll(() => {
    if (lack === null) server = Postgres.start();
  });
  afterAll(() => {
    if (lack === null) server.stop();
  });
  return { lack, server: () => server, newSchema: () => `s${(schemas += 1)}` };
}

/** What a load can fill: new databases of each kind. */
export function kindsOf({ lack, server, newSchema }: ReturnType<typeof postgresServer>) {
  return [
    {
      kind: `PostgreSQL${skipped(lack)}`,
      skip: lack !== null,
      make: () => Promise.resolve(inPostgres(server(), newSchema())),
    },
    {
      kind: 'DuckDB',
      skip: false,
      make: async () => inDuckDB(join(await temporaryFolder(), 'loaded.duckdb')),
    },
  ];
}

/** A database as tests see it: where to load, and what is in it then. */
export interface LoadedDatabase {
  /** Arguments of `millrace load` that name it. */
  readonly to: readonly string[];
  /** File, or address and schema. */
  readonly place: readonly [address: string, schema?: string];
  /** Rows as text, values joined by `|`. */
  sql(text: string): Promise<string[]>;
}

export function inPostgres(server: Postgres, schema: string): LoadedDatabase {
  return {
    to: ['--to', server.url, '--schema', schema],
    place: [server.url, schema],
    sql: async (text) =>
      server
        .sql(`SET search_path TO ${schema}; SET TIME ZONE 'UTC'; ${text}`)
        .split('\n')
        .filter((line) => line !== ''),
  };
}

export function inDuckDB(file: string): LoadedDatabase {
  return {
    to: ['--to', `duckdb:${file}`],
    place: [file],
    sql: async (text) => {
      const instance = await DuckDBInstance.create(file);
      const connection = await instance.connect();
      const rows = (await connection.runAndReadAll(text)).getRows();
      connection.closeSync();
      instance.closeSync();
      return rows.map((row) => row.map((value) => String(value ?? '')).join('|'));
    },
  };
}

/** An open postgres sink that keeps events and meals, and what sends to it. Closed with the test. */
export async function postgresSink(connectionString: string, schema: string, tables = MEAL_TABLES) {
  const sink = createSink(parseOptions({ connectionString, schema, tables }), makeContext());
  await sink.open(signal);
  onTestFinished(() => sink.close(signal));
  const send = (events: readonly JournalEvent[]): Promise<SendResult[]> =>
    sink.send(
      events.map((event) => ({ event, destination: null })),
      signal,
    );
  return { sink, send };
}

/** The table of events, and those of meals. */
export const MEAL_TABLES = ['events', 'meals', 'meal_items'];

/** A batch of so many that was taken. */
export function delivered(events: readonly unknown[]): { status: string }[] {
  return events.map(() => ({ status: 'delivered' }));
}

/** The process of a server that waits for a lock. */
export function waitingIn(server: Postgres): string | null {
  const pid = server.sql(`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);
  return pid === '' ? null : pid;
}

export interface Loaded {
  readonly code: number | null;
  readonly stderr: string;
  /** The summary of the last round. */
  readonly summary: Readonly<Record<string, unknown>>;
}

export async function load(
  archive: string | readonly string[],
  { to }: Pick<LoadedDatabase, 'to'>,
  ...more: readonly string[]
): Promise<Loaded> {
  const ended = await millrace(['load', ...[archive].flat(), ...to, '--json', ...more]);
  const last = ended.stdout.trim().split('\n').at(-1) ?? '';
  return {
    code: ended.code,
    stderr: ended.stderr,
    summary: last === '' ? {} : (JSON.parse(last) as Record<string, unknown>),
  };
}
