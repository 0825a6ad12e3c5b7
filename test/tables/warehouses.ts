import { DuckDBInstance } from '@duckdb/node-api';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { lacksWorking, type Lack } from '../support/requirements.ts';

/** A Python that may have what only tests need: sqlglot, chdb. */
export const PYTHON = process.env['MILLRACE_TEST_PYTHON'] ?? 'python3';

/** A warehouse that really runs here. */
export interface Warehouse {
  run(sql: string): Promise<void>;
  /** Every row as texts; null is an empty one. */
  rows(sql: string): Promise<string[][]>;
}

export interface RunningDialect {
  readonly dialect: 'duckdb' | 'postgres' | 'clickhouse';
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
  {
    dialect: 'clickhouse',
    title: 'ClickHouse',
    lack: lacksWorking('chdb (pip install chdb)', PYTHON, ['-c', 'import chdb']),
    format: 'parquet',
    ways: ['export'],
    open: openClickhouse,
  },
];

/** One statement by one where the client takes no script; psql does, and would be started for each. */
export async function runAll(dialect: string, warehouse: Warehouse, script: string): Promise<void> {
  if (dialect === 'postgres') return warehouse.run(script);
  for (const statement of script.split(/(?<=;)\n/))
    if (statement.replaceAll(/--.*$/gm, '').trim() !== '') await warehouse.run(statement);
}

/** ClickHouse as a library of Python. */
function openClickhouse(): Promise<Warehouse> {
  const child = spawn(PYTHON, [join(import.meta.dirname, 'clickhouse.py')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const run = async (sql: string): Promise<unknown[][]> => {
    child.stdin.write(`${JSON.stringify(sql)}\n`);
    const { value } = (await answers.next()) as { value?: string };
    const answer = JSON.parse(value ?? '"it has ended"') as unknown[][] | string;
    if (typeof answer === 'string') throw new Error(answer);
    return answer;
  };
  return Promise.resolve({
    run: async (sql) => void (await run(sql)),
    rows: async (sql) => (await run(sql)).map((row) => row.map(textOf)),
  });
}

async function openDuckdb(): Promise<Warehouse> {
  const db = await (await DuckDBInstance.create()).connect();
  onTestFinished(() => db.closeSync());
  await db.run(`SET TimeZone = 'UTC'`);
  return {
    run: async (sql) => void (await db.run(sql)),
    rows: async (sql) => {
      const rows = (await db.runAndReadAll(sql)).getRowsJson();
      return rows.map((row) => row.map(textOf));
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
}
