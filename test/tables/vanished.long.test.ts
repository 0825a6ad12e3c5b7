import { describe, expect, test } from 'vitest';
import { backfillOf, eventsOf, type MadeUpMeal } from '../export/load/backfills.ts';
import { skipped } from '../support/requirements.ts';
import { fillingOf, ids } from './vanished-support.ts';
import { WAREHOUSES } from './warehouses.ts';

const MEALS: readonly MadeUpMeal[] = Array.from({ length: 60 }, (_, n) => ({
  id: `meal-${String(n).padStart(2, '0')}`,
  user: `user-${n % 6}`,
  day: `2026-01-${String((n % 28) + 1).padStart(2, '0')}`,
}));
const PULLS = Array.from({ length: 6 }, (_, n) => ({ user_id: `user-${n}` }));
const isGone = (_: unknown, n: number): boolean => n % 7 === 0;

describe.each(WAREHOUSES)('a backfill loaded into $title', (warehouseOf) => {
  const { lack } = warehouseOf;
  const { made, load, exported } = fillingOf(warehouseOf);

  test.skipIf(lack !== null)(
    `what has vanished is removed, in whatever order it comes${skipped(lack)}`,
    async () => {
      const left = MEALS.filter((meal, n) => !isGone(meal, n));
      const back = MEALS[7] as MadeUpMeal;
      const expected = [...left.map(({ id }) => id), back.id, 'meal-new'].toSorted();
      const parts = [
        [
          '--export',
          await exported(
            eventsOf(
              MEALS.filter((_, n) => n % 3 > 0),
              '2026-11-01T00:00:00Z',
            ),
          ),
        ],
        ['--backfill', await backfillOf(MEALS, PULLS, '2026-11-10T00:00:00.000Z')],
        ['--backfill', await backfillOf(left, PULLS, '2026-11-20T00:00:00.000Z')],
        ['--export', await exported(eventsOf([back, { ...back, id: 'meal-new' }], '2026-11-21T00:00:01Z'))],
      ] as const;
      for (const order of [parts, parts.toReversed(), [...parts, ...parts]]) {
        const warehouse = await made();
        for (const [kind, folder] of order) await load(warehouse, kind, folder);
        expect(await ids(warehouse, 'SELECT id FROM meals_latest ORDER BY id')).toEqual(expected);
        expect(await ids(warehouse, 'SELECT meal_id FROM meal_items_latest ORDER BY meal_id')).toEqual(
          expected,
        );
        // Rows of earlier pulls are gone, and each pull is noted once.
        const counts = 'SELECT count(*), count(DISTINCT id) FROM meals WHERE _event_id IS NULL';
        expect(await warehouse.rows(counts)).toEqual([[String(left.length), String(left.length)]]);
        expect(await warehouse.rows('SELECT count(*) FROM _millrace_whole_pulls')).toEqual([['12']]);
      }
    },
  );
});
