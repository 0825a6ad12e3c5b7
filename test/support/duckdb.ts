import { DuckDBInstance } from '@duckdb/node-api';

/** What DuckDB answers, on a database of its own: rows of values as JSON has them. */
export async function queryDuckdb(sql: string): Promise<unknown[][]> {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson();
  } finally {
    connection.closeSync();
  }
}
