import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { millrace } from '../support/millrace.ts';
import { temporaryFolder } from '../support/folders.ts';
import { archive, archived, duckdb, exported, exporting, mealEvents, mealOf } from './support.ts';

const FOODS = [1, 2, 3, 4, 5, 6].reduce((sum, n) => sum + mealOf(n).foods, 0);

/** Events of three kinds: meals, sleep, and samples of the heart rate. */
const sleep = (n: number) => {
  const body = `{"event_type":"daily.data.sleep.created","data":{"id":"sleep-${n}","user_id":"user-1"},"team_id":"team-1","user_id":"user-1","client_user_id":null}`;
  return contractEvent(n, { type: 'daily.data.sleep.created', body: Buffer.from(body) });
};
const heart = (n: number) => {
  const body = `{"event_type":"daily.data.heartrate.created","data":{"source":{"provider":"made_up"},"data":[{"timestamp":"2026-01-01T00:00:00Z","value":${n}},{"timestamp":"2026-01-01T00:01:00Z","value":61}]},"team_id":"team-1","user_id":"user-1","client_user_id":null}`;
  return contractEvent(n, { type: 'daily.data.heartrate.created', body: Buffer.from(body) });
};
const unknown = contractEvent(30, {
  type: 'made.up',
  body: Buffer.from('{"event_type":"made.up","data":{}}'),
});
const events = [...mealEvents(1, 6), sleep(10), sleep(11), heart(20), unknown];
const ROWS = { events: 10, meals: 6, meal_items: FOODS, sleep: 2, timeseries: 2 };

test.each(['parquet', 'ndjson', 'delta'] as const)(
  'all tables in one export, as %s, have the rows that an export of each has',
  async (format) => {
    const { out, path, run, grow } = await exporting(events, { table: 'all', format });
    expect(await run()).toMatchObject({ records: 10, rows: ROWS, problems: 0, rejects: 0 });
    expect(await run()).toMatchObject({ steps: 0, rows: {} });
    const tables = readdirSync(out).filter((name) => !name.startsWith('_'));
    expect(tables.toSorted()).toEqual(expect.arrayContaining(Object.keys(ROWS).toSorted()));
    if (format === 'parquet') {
      const sql = await duckdb();
      for (const table of Object.keys(ROWS)) {
        const alone = await temporaryFolder();
        if (table !== 'meal_items') await exported([path], alone, { table });
        const rowsIn = (folder: string) => `FROM read_parquet('${join(folder, table)}/**/*.parquet')`;
        if (table !== 'meal_items')
          expect(
            await sql(
              `(${rowsIn(out)} EXCEPT ALL ${rowsIn(alone)}) UNION ALL (${rowsIn(alone)} EXCEPT ALL ${rowsIn(out)})`,
            ),
          ).toEqual([]);
      }
    }
    expect(await grow([sleep(12)])).toMatchObject({ records: 1, rows: { events: 1, sleep: 1 } });
  },
);

test('several tables pass over files that have no event of any of them', async () => {
  const path = await archived(mealEvents(1, 3));
  await archive(path, [heart(20)]);
  await archive(path, [sleep(10)]);
  const out = await temporaryFolder();
  const args = ['export', path, '--out', out, '--json'];
  const ended = await millrace([...args, '--table', 'sleep', '--table', 'meal_items', '--table', 'meals']);
  expect(ended).toMatchObject({ code: 0 });
  expect(JSON.parse(ended.stdout)).toMatchObject({
    passed_over: 1,
    rows: { sleep: 1, meals: 3, meal_items: 6 },
  });
  expect(
    JSON.parse(
      (await millrace([...args, '--table', 'meal_items', '--table', 'meals', '--table', 'sleep'])).stdout,
    ),
  ).toMatchObject({ steps: 0 });
  expect(await millrace([...args, '--table', 'all'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('meal_items,meals,sleep'),
  });
  expect(await millrace([...args, '--table', 'colours'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/the tables are events, .*, or all/),
  });
});
