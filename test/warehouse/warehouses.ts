import { DuckDBInstance } from '@duckdb/node-api';
import { onTestFinished } from 'vitest';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import type { Lack } from '../support/requirements.ts';

/** A warehouse that really runs here. */
export interface Warehouse {
  run(sql: string): Promise<void>;
  /** Every row as texts; null is an empty one. */
  rows(sql: string): Promise<string[][]>;
}

export interface RunningDialect {
  readonly dialect: 'duckdb' | 'postgres';
  readonly title: string;
  readonly lack: Lack;
  /** As the warehouse can read them. */
  readonly format: 'parquet' | 'ndjson';
  /** Ways to load that are tried; one is enough where each takes seconds. */
  readonly ways: readonly ('export' | 'days' | 'files')[];
  open(): Promise<Warehouse>;
}

/** Warehouses of the test's own, empty. */
export const WAREHOUSES: readonly RunningDialect[] = [
  {
    dialect: 'duckdb',
    title: 'DuckDB',
    lack: null,
    format: 'parquet',
    ways: ['export', 'days', 'files'],
    open: openDuckdb,
  },
  {
    dialect: 'postgres',
    title: 'PostgreSQL',
    lack: lacksPostgres(),
    format: 'ndjson',
    ways: ['export'],
    open: openPostgres,
  },
];

async function openDuckdb(): Promise<Warehouse> {
  const db = await (await DuckDBInstance.create()).connect();
  onTestFinished(() => db.closeSync());
  await db.run(`SET TimeZone = 'UTC'`);
  return {
    run: async (sql) => void (await db.run(sql)),
    rows: async (sql) => {
      const rows = (await db.runAndReadAll(sql)).getRowsJson();
      return rows.map((row) =>
        row.map((value) => (typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value))),
      );
    },
  };
}

async function openPostgres(): Promise<Warehouse> {
  const server = Postgres.start();
  onTestFinished(() => server.stop());
  return {
    run: async (sql) => void server.sql(sql),
    rows: async (sql) => {
      const text = server.sql(`SET TIME ZONE 'UTC';\n${sql.replace(/;?$/, ';')}`);
      return text === '' ? [] : text.split('\n').map((line) => line.split('|'));
    },
  };
}
