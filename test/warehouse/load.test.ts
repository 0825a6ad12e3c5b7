import { DuckDBInstance } from '@duckdb/node-api';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';

const MEALS = 40;

/** A made-up document, and what the sums over its foods are. */
function makeDocument(): { document: object; foods: number; kcal: number; sodium: number } {
  let foods = 0;
  let kcal = 0;
  let sodium = 0;
  const meals = Array.from({ length: MEALS }, (_, n) => {
    const data: Record<string, object> = {};
    for (let food = 0; food <= n % 4; food += 1) {
      foods += 1;
      kcal += n + food;
      sodium += food * 10;
      data[`Made up, black, ${food} tbsp(s)`] = {
        energy: { unit: 'kcal', value: n + food },
        macros: { carbs: 1.25, fats: { total: 0.5 } },
        micros: { minerals: { sodium: food * 10 } },
        never_seen_before: true,
      };
    }
    const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    const at = new Date(Date.UTC(2026, 0, 1, n)).toISOString();
    return { id, user_id: id, name: `Meal "${n}"\n\\`, timestamp: at, created_at: at, updated_at: at, data };
  });
  return { document: { meals }, foods, kcal, sodium };
}

async function shapedTables(): Promise<{ folder: string; sums: ReturnType<typeof makeDocument> }> {
  const folder = await temporaryFolder();
  chmodSync(folder, 0o755);
  const sums = makeDocument();
  const file = join(folder, 'document.json');
  writeFileSync(file, JSON.stringify(sums.document));
  const ended = await millrace(['ndjson', file, '--table', 'meals', '--out', folder]);
  expect(ended.code, ended.stderr).toBe(0);
  return { folder, sums };
}

/** Tables, views and load statements for the two tables, as `millrace schema` prints them. */
async function statements(dialect: string, folder: string): Promise<string> {
  const parts: string[] = [];
  for (const only of ['tables', 'views', 'load']) {
    for (const table of ['meals', 'meal_items']) {
      const from = only === 'load' ? ['--from', join(folder, `${table}.ndjson`)] : [];
      const { code, stdout, stderr } = await millrace([
        'schema',
        table,
        '--dialect',
        dialect,
        '--only',
        only,
        ...from,
      ]);
      expect(code, stderr).toBe(0);
      parts.push(stdout);
    }
  }
  return parts.join('\n');
}

const SUMS = 'SELECT count(*), sum(energy_value), sum(sodium_mg) FROM meal_items';
const LATEST = 'SELECT count(*) FROM meals_latest';

describe('tables load twice with the generated DDL and load statements, and add up to the source', () => {
  test('into DuckDB', async () => {
    const { folder, sums } = await shapedTables();
    const db = await (await DuckDBInstance.create()).connect();
    onTestFinished(() => db.closeSync());
    await db.run(await statements('duckdb', folder));
    await db.run(await statements('duckdb', folder));
    const [row = []] = (await db.runAndReadAll(SUMS)).getRows();
    expect(row.map(Number)).toEqual([sums.foods, sums.kcal, sums.sodium]);
    expect(Number((await db.runAndReadAll(LATEST)).getRows()[0]?.[0])).toBe(MEALS);
  });

  const lack = lacksPostgres();
  test.skipIf(lack !== null)(`into PostgreSQL${skipped(lack)}`, async () => {
    const { folder, sums } = await shapedTables();
    const server = Postgres.start();
    onTestFinished(() => server.stop());
    server.sql(await statements('postgres', folder));
    server.sql(await statements('postgres', folder));
    expect(server.sql(SUMS).split('|').map(Number)).toEqual([sums.foods, sums.kcal, sums.sodium]);
    expect(server.sql(LATEST)).toBe(String(MEALS));
  });
});
