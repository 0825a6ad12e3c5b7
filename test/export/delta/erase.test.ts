import { readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { duckdb, exporting, filesBelow, mealEvents, mealOf } from '../support.ts';
import { skipped } from '../../support/requirements.ts';
import { deltalake, lacksDeltalake } from './deltalake.ts';
import { erasureOf } from './support.ts';

const GONE = 'user-3';
const kept = (to: number) => Array.from({ length: to }, (_, n) => n + 1).filter((n) => n % 7 !== 3);
const delta = { format: 'delta', table: 'meals' } as const;

const erase = (folders: readonly string[], onStep?: (step: string) => void) =>
  erasureOf(GONE, folders, onStep);

/** What any program finds of the user in any file below a folder, whatever lists it. */
async function traces(folder: string): Promise<string[]> {
  const sql = await duckdb();
  const found: string[] = [];
  for (const name of filesBelow(folder, /\.(?:json|parquet)$/)) {
    const path = join(folder, name);
    if (name.endsWith('.json') && readFileSync(path, 'utf8').includes(GONE)) found.push(name);
    if (!name.endsWith('.parquet') || name.includes('.checkpoint.')) continue;
    const [[count]] = (await sql(
      `SELECT count(*)::INT FROM read_parquet('${path}', hive_partitioning = false) AS t WHERE t::TEXT LIKE '%${GONE}%'`,
    )) as [[number]];
    if (count > 0) found.push(name);
  }
  return found;
}

const lacks = lacksDeltalake();

describe.skipIf(lacks !== null)(`erasure of Delta tables${skipped(lacks)}`, () => {
  const ask = deltalake();
  const rows = async (table: string, ...columns: string[]): Promise<string[]> =>
    (await ask<{ rows: unknown[][] }>('rows', table, { columns })).rows.map((row) => row.join(' ')).sort();

  it("removes the user's rows, of any writer, and nothing else; no file or log keeps them", async () => {
    const { out, table, run: exportAll, grow } = await exporting(mealEvents(1, 30), delta);
    await exportAll();
    const items = join(out, 'meal_items');
    await ask('append', table, {
      rows: [
        { id: 'theirs', user_id: GONE },
        { id: 'others', user_id: 'user-1' },
      ],
    });
    const before = await rows(items, 'meal_id', 'energy_value');
    expect(await traces(out)).not.toEqual([]);
    const { run } = await erase([out]);
    const { receipts, left } = await run();
    expect(left).toEqual([]);
    expect(receipts[0]?.not_searched).toEqual([]);
    expect(receipts[0]?.items).toContainEqual(
      expect.objectContaining({
        item: expect.stringMatching(/^meals\/dt=2026-11-2\d\/part-000001\.parquet$/) as unknown,
      }),
    );
    expect(await rows(table, 'id')).toEqual([...kept(30).map((n) => mealOf(n).id), 'others']);
    const others = new Set(kept(30).map((n) => mealOf(n).id));
    expect(await rows(items, 'meal_id', 'energy_value')).toEqual(
      before.filter((row) => others.has(row.split(' ')[0] ?? '')),
    );
    expect(await traces(out)).toEqual([]);
    // Others write on, and so do we.
    await ask('append', table, { rows: [{ id: 'later' }] });
    expect(await grow(mealEvents(31, 31))).toMatchObject({ steps: 1 });
    expect(await rows(table, 'id')).toHaveLength(kept(30).length + 3);
  });

  it('while another program appends, nothing of the user is left, and nothing of theirs is lost', async () => {
    const { out, table, run: exportAll } = await exporting(mealEvents(1, 14), delta);
    await exportAll();
    let appended = 0;
    const others: Promise<unknown>[] = [];
    const { run } = await erase([out], (step) => {
      // Between what was read and the commit of it.
      if (step !== 'written' || appended >= 3) return;
      appended += 1;
      others.push(
        ask('append', table, {
          rows: [
            { id: `theirs-${appended}`, user_id: GONE },
            { id: `others-${appended}`, user_id: 'x' },
          ],
        }),
      );
    });
    await run();
    await Promise.all(others);
    const { run: again } = await erase([out]);
    // An append that met our commit has written its file again, and the first one may still be in use.
    for (const { item } of (await again()).left) utimesSync(join(out, item), 0, 0);
    expect((await again()).left).toEqual([]);
    const expected = [
      ...kept(14).map((n) => mealOf(n).id),
      ...Array.from({ length: appended }, (_, n) => `others-${n + 1}`),
    ];
    expect(await rows(table, 'id')).toEqual(expected.sort());
    expect(await traces(out)).toEqual([]);
  });
});
