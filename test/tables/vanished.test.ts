import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DIALECTS } from '../../src/tables/sql/dialects/registry.ts';
import { removeVanished } from '../../src/tables/sql/vanished.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { backfillOf, eventsOf, type MadeUpMeal } from '../export/load/backfills.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';
import { fillingOf, ids } from './vanished-support.ts';
import { WAREHOUSES } from './warehouses.ts';

describe.each(WAREHOUSES)('a backfill loaded into $title', (warehouseOf) => {
  const { lack } = warehouseOf;
  const { made, load, exported } = fillingOf(warehouseOf);

  test.skipIf(lack !== null)(`a pull removes only what it asked for${skipped(lack)}`, async () => {
    const meals: readonly MadeUpMeal[] = [
      { id: 'before', day: '2026-01-09' },
      { id: 'first', day: '2026-01-10' },
      { id: 'last', day: '2026-01-20' },
      { id: 'after', day: '2026-01-21' },
      { id: 'other-user', user: 'user-2', day: '2026-01-10' },
      { id: 'other-provider', provider: 'other', day: '2026-01-10' },
    ];
    const range = { user_id: 'user-1', provider: 'made_up', since: '2026-01-10', until: '2026-01-20' };
    const warehouse = await made();
    await load(warehouse, '--export', await exported(eventsOf(meals, '2026-11-01T00:00:00Z')));
    await load(warehouse, '--backfill', await backfillOf([{ id: 'last', day: '2026-01-20' }], [range]));
    const latest = 'SELECT id FROM meals_latest ORDER BY id';
    expect(await ids(warehouse, latest)).toEqual(['after', 'before', 'last', 'other-provider', 'other-user']);
    const all = { ...range, provider: null, since: null, until: null, began_at: '2026-12-02T00:00:00.000Z' };
    await load(warehouse, '--backfill', await backfillOf([], [all]));
    expect(await ids(warehouse, latest)).toEqual(['other-user']);
    // An older event comes late: the removals alone are enough.
    await load(warehouse, '--export', await exported(eventsOf([{ id: 'late' }], '2026-11-02T00:00:00Z')));
    expect(await ids(warehouse, latest)).toEqual(['other-user']);
  });
});

const schema = (folder: string): ReturnType<typeof millrace> =>
  millrace(['schema', '--dialect', 'duckdb', '--backfill', folder]);

test('what is no backfill, or lacks a table or a line, is an error with a name', async () => {
  const empty = await temporaryFolder();
  expect(await schema(empty)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('not the output folder of a backfill') as string,
  });
  const folder = await backfillOf(
    [{ id: 'm-1' }],
    [{ user_id: 'user-1', table: 'sleep', resource: 'sleep' }],
  );
  expect(await schema(folder)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('_pulls.ndjson:1: sleep.ndjson is missing') as string,
  });
  writeFileSync(join(folder, '_pulls.ndjson'), '{"user_id":"user-1"');
  expect(await schema(folder)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('_pulls.ndjson:1: it is no line of a pull') as string,
  });
});

test('a table without the column that its rows are cut by loses none to a pull of a range', () => {
  const { definition } = TABLES.entry('meals');
  const cutByTime = {
    ...definition,
    only: ['id', 'user_id', 'timestamp', '_event_id', '_received_at', '_loaded_at'],
  };
  const removed = removeVanished({ definition: cutByTime, document: cutByTime }, DIALECTS.duckdb);
  expect(removed).not.toContain('"timestamp"');
  expect(removeVanished(TABLES.entry('meals'), DIALECTS.duckdb)).toContain('"calendar_date"');
});
