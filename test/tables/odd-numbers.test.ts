import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { archive, duckdb, exported } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { eventOf } from './support.ts';

const KEPT = ['99999999999999900000', '-99999999999999900000.5', '0e30', '0E-99', '1e-18', '12.50e-1'];
/** Each made a warehouse, or the writer of Parquet, refuse the file it was in. */
const TO_EXTRA = [
  '0e999999999',
  '0e99999999999',
  '0e-20000',
  `1.${'0'.repeat(17_000)}1`,
  `1${'0'.repeat(400)}e-400`,
  '99999999999999999999.9999999999999999',
  '-99999999999999999999.9999999999999999995',
  '1e20',
  '9e-19',
];

async function archiveOfNumbers(): Promise<string> {
  const path = await temporaryFolder();
  const all = [...KEPT, ...TO_EXTRA].map((number, n) => {
    const text = `{"id":"meal-${n}","name":"${n}","data":{"Made up":{"energy":{"unit":"kcal","value":4711}}}}`;
    const event = eventOf(n + 1, 'daily.data.meal.created', JSON.parse(text));
    return { ...event, body: Buffer.from(event.body.toString().replace('4711', number)) };
  });
  await archive(path, all);
  return path;
}

const ROWS = `SELECT m.name, i.energy_value, i.extra FROM meal_items i JOIN meals m ON m.id = i.meal_id`;

/** @param rows name of the meal, value, extra */
function check(rows: readonly (readonly unknown[])[]): void {
  const found = new Map(rows.map(([name, ...rest]) => [Number(name), rest]));
  expect(found.size).toBe(KEPT.length + TO_EXTRA.length);
  for (const [n, number] of KEPT.entries()) {
    const [value, extra] = found.get(n) ?? [];
    expect([number, Number(value), extra]).toEqual([number, Number(number), null]);
  }
  for (const [n, number] of TO_EXTRA.entries()) {
    const [value, extra] = found.get(KEPT.length + n) ?? [];
    expect([number, value]).toEqual([number, null]);
    // PostgreSQL rewrites numbers with exponents.
    expect(String(extra)).toContain(!/e/i.test(number) ? number : '"value":');
  }
}

describe('a number that a warehouse refuses is in extra, and holds nothing up', () => {
  test('in Parquet, and loaded into DuckDB', async () => {
    const [path, out] = [await archiveOfNumbers(), await temporaryFolder()];
    await exported([path], out, { table: 'meals' });
    const to = `duckdb:${join(out, 'health.db')}`;
    const loaded = await millrace(['load', path, '--table', 'meals', '--to', to]);
    expect(loaded.code, loaded.stderr).toBe(0);
    const sql = await duckdb();
    await sql(`ATTACH '${join(out, 'health.db')}' AS loaded`);
    check(await sql(ROWS.replaceAll(/(?=meals m|meal_items i)/g, 'loaded.')));
    check(
      await sql(ROWS.replaceAll(/(meals|meal_items) (?=[mi]\b)/g, `read_parquet('${out}/$1/**/*.parquet') `)),
    );
  });

  const lack = lacksPostgres();
  test.skipIf(lack !== null)(`loaded into PostgreSQL${skipped(lack)}`, async () => {
    const server = Postgres.start();
    onTestFinished(() => server.stop());
    const loaded = await millrace(['load', await archiveOfNumbers(), '--table', 'meals', '--to', server.url]);
    expect(loaded.code, loaded.stderr).toBe(0);
    const rows = server.sql(
      `SELECT json_agg(json_build_array(name, energy_value, extra::text)) FROM (${ROWS}) x`,
    );
    check(JSON.parse(rows) as unknown[][]);
  });
});
