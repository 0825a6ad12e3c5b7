import { DuckDBInstance, version } from '@duckdb/node-api';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { exporting, mealEvent } from '../support.ts';
import { skipped } from '../../support/requirements.ts';
import { duckdbExtension } from './deltalake.ts';

const extension = duckdbExtension(version());
const lacks = extension === null ? 'needs duckdb-extension-delta' : null;

it.skipIf(lacks !== null)(`DuckDB's delta extension reads the tables${skipped(lacks)}`, async () => {
  const { out, table, grow } = await exporting([], { format: 'delta', table: 'meals' });
  for (let n = 0; n < 12; n += 1) await grow([mealEvent(2 * n + 1), mealEvent(2 * n + 2)]);
  const instance = await DuckDBInstance.create(':memory:', { allow_unsigned_extensions: 'true' });
  const connection = await instance.connect();
  onTestFinished(() => connection.closeSync());
  await connection.run(`SET TimeZone = 'UTC'`);
  await connection.run(`LOAD '${extension ?? ''}'`);
  const sql = async (text: string) => (await connection.runAndReadAll(text)).getRowsJson();
  const meals = `delta_scan('${table}')`;
  expect(
    await sql(
      `SELECT count(*)::INT, count(DISTINCT id)::INT, bool_and(dt = _received_at::DATE) FROM ${meals}`,
    ),
  ).toEqual([[24, 24, true]]);
  // What is passed over by statistics, and by partition.
  const days = await sql(
    `SELECT calendar_date::TEXT, dt::TEXT, count(*)::INT FROM ${meals} GROUP BY ALL ORDER BY ALL`,
  );
  for (const [day = '', dt = '', count] of days as string[][]) {
    const where = `calendar_date = DATE '${day}' AND dt = DATE '${dt}'`;
    expect(await sql(`SELECT count(*)::INT FROM ${meals} WHERE ${where}`)).toEqual([[count]]);
  }
  const last = await sql(`SELECT max(timestamp)::TEXT FROM ${meals}`);
  const [[at]] = last as [[string]];
  expect(await sql(`SELECT count(*) > 0 FROM ${meals} WHERE timestamp >= TIMESTAMPTZ '${at}'`)).toEqual([
    [true],
  ]);
  const items = `delta_scan('${join(out, 'meal_items')}')`;
  expect(await sql(`SELECT count(*)::INT, sum(energy_value)::TEXT FROM ${items}`)).toEqual([
    [36, expect.stringMatching(/^\d+\.\d{18}$/)],
  ]);
});
