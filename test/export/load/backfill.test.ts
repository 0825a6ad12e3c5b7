import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { archived, mealEvent } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { kindsOf, load, postgresServer } from './support.ts';

const LOADED_AT = '2026-11-20T06:00:00.000Z';
const COUNTS = `SELECT (SELECT count(*) FROM meals), (SELECT count(*) FROM meal_items),
  (SELECT count(*) FROM meals_latest), (SELECT count(*) FROM meal_items_latest)`;

interface MadeUpMeal {
  readonly id: string;
  readonly user?: string;
  readonly day?: string;
}

/** Writes the output folder of a backfill, each meal with one food. */
function writeBackfill(folder: string, meals: readonly MadeUpMeal[], loadedAt = LOADED_AT): void {
  const rows = meals.map(({ id, user = 'user-1', day = '2026-01-05' }) => ({
    meal: `{"id":"${id}","user_id":"${user}","calendar_date":"${day}","updated_at":"2026-01-05T10:00:00Z","source_provider":"made_up","energy_value":1.100000000000000001,"_loaded_at":"${loadedAt}"}\n`,
    item: `{"meal_id":"${id}","user_id":"${user}","meal_updated_at":"2026-01-05T10:00:00Z","item_index":0,"name":"Tea","_loaded_at":"${loadedAt}"}\n`,
  }));
  writeFileSync(join(folder, 'meals.ndjson'), rows.map(({ meal }) => meal).join(''));
  writeFileSync(join(folder, 'meal_items.ndjson'), rows.map(({ item }) => item).join(''));
  writeFileSync(join(folder, '_backfill.ndjson'), '{"user_id":"user-1","status":"done"}\n');
}

describe.each(kindsOf(postgresServer()))('a backfill loaded into $kind', ({ skip, make }) => {
  test.skipIf(skip)('is there once, however often it is loaded, and follows its files', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    writeBackfill(folder, [{ id: 'm-1' }, { id: 'm-2' }]);
    const rows = { meals: 2, meal_items: 2 };
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { ok: true, files: 2, rows } });
    expect(await load(folder, database)).toMatchObject({
      code: 0,
      summary: { files: 0, before: 2, rows: {} },
    });
    expect(await database.sql(COUNTS)).toEqual(['2|2|2|2']);
    expect(await database.sql(`SELECT energy_value, count(*) FROM meals GROUP BY 1`)).toEqual([
      expect.stringMatching(/^1\.1000000000000000010*\|2$/),
    ]);
    writeBackfill(folder, [{ id: 'm-2' }, { id: 'm-3' }, { id: 'm-4' }]);
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { replaced: 2 } });
    expect(await database.sql(COUNTS)).toEqual(['3|3|3|3']);
  });

  test.skipIf(skip)('is loaded beside an archive, whose events it meets in the views', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    const path = await archived([mealEvent(1), mealEvent(2)]);
    writeBackfill(folder, [{ id: '00000000-0000-4000-8000-000000000001' }]);
    expect(await load([path, folder], database)).toMatchObject({
      code: 0,
      summary: { rows: { events: 2, meals: 3 } },
    });
    expect(await database.sql('SELECT (SELECT count(*) FROM meals), count(*) FROM meals_latest')).toEqual([
      '3|2',
    ]);
  });

  test.skipIf(skip)('names lines that are no row, and tries them again', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    writeBackfill(folder, [{ id: 'm-1' }]);
    const file = join(folder, 'meals.ndjson');
    const good = readFileSync(file, 'utf8');
    const order = good
      .replace('{"id":"m-1",', '{ ')
      .replace('}\n', ', "id" : "m-1"}\n')
      .replace('"user-1"', 'null');
    writeFileSync(file, `${order}{"id":"m-2","colour":1}\n{"id":\n{"id":"m-3"`);
    cpSync(file, join(folder, 'colours.ndjson'));
    const { code, stderr, summary } = await load(folder, database);
    expect({ code, summary }).toMatchObject({ code: 3, summary: { problems: 4, rows: { meals: 1 } } });
    for (const said of ['no column "colour"', 'meals.ndjson:3: ', 'meals.ndjson:4: ', 'no table colours'])
      expect(stderr).toContain(said);
    writeBackfill(folder, [{ id: 'm-1' }]);
    expect(await load(folder, database)).toMatchObject({ summary: { problems: 1, rows: { meals: 1 } } });
    expect(await database.sql(COUNTS)).toEqual(['1|1|1|1']);
  });
});
