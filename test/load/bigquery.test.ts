import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TABLES } from '../../src/warehouse/tables.ts';
import { erasuresOver, folderStore } from '../erase/support.ts';
import { archive, mealEvent, mealOf } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { lacksWorking, skipped } from '../support/requirements.ts';
import { PYTHON } from '../warehouse/warehouses.ts';
import {
  COUNTS,
  dataFiles,
  foodsOf,
  load,
  mealsFrom,
  numbersIn,
  stagedIn,
  started,
} from './bigquery-support.ts';

test('every event and its rows are there once, whatever runs how often', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 30));
  const foods = foodsOf(mealsFrom(1, 30).map((_, n) => n + 1));
  expect(await load(fake, path)).toMatchObject({
    complete: true,
    files: 3,
    records: 30,
    duplicates: 0,
    rows: { events: 30, meals: 30, meal_items: foods },
  });
  expect(await fake.sql(COUNTS)).toEqual([`30|30|30|${foods}`]);
  const asked = fake.asked.length;
  expect(await load(fake, path)).toMatchObject({ files: 0, before: 3, rows: {} });
  // A round without anything new asks, and changes nothing.
  expect(fake.asked.slice(asked).filter(({ path: at }) => at === '/upload/jobs')).toEqual([]);
  // One file has it twice, and it was there before.
  await archive(path, [mealEvent(31), mealEvent(31), mealEvent(3)]);
  expect(await load(fake, path)).toMatchObject({
    files: 2,
    records: 3,
    duplicates: 2,
    before: 3,
    rows: { events: 1 },
  });
  expect(await fake.sql(COUNTS)).toEqual([`31|31|31|${foods + mealOf(31).foods}`]);
  expect(await stagedIn(fake)).toEqual([]);
  expect(fake.expiring.size).toBeGreaterThan(0);
});

test('two files of one step that hold the same event give its rows once', async () => {
  const fake = await started();
  const [path, other] = [await temporaryFolder(), await temporaryFolder()];
  await archive(path, [mealEvent(1), mealEvent(4)]);
  await archive(other, [mealEvent(4), mealEvent(7)]);
  expect(await load(fake, [path, other])).toMatchObject({
    records: 4,
    duplicates: 1,
    rows: { events: 3, meals: 3 },
  });
  expect(await numbersIn(fake)).toEqual([1, 4, 7]);
});

test('keeps texts, times and whole numbers exactly, and what has no column', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 9));
  await load(fake, path);
  const { id } = mealOf(5);
  expect(
    await fake.sql(
      `SELECT id, replace(name, chr(10), '_'), source_id, timestamp = '2026-01-06T08:00:00.123456Z'::timestamptz,
         CAST(extra AS text) LIKE '%"never_seen":{"n":5.1%' FROM meals_latest WHERE id = '${id}'`,
    ),
  ).toEqual([`${id}|Meal_5|9007199254740993|true|true`]);
  expect(await fake.sql(`SELECT name FROM meal_items WHERE meal_id = '${id}'`)).toEqual([
    'Made up, 0 "tbsp"',
  ]);
});

test('has what is left after an erasure, of files rewritten and of files removed', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 30));
  await archive(path, [mealEvent(33)]);
  await archive(path, [mealEvent(7), mealEvent(34)]);
  await load(fake, path, { stepBytes: 1 });
  const { erasures } = erasuresOver(await temporaryFolder(), [folderStore(path)]);
  await erasures.request({ by: 'user', id: 'user-5', team: null }, true);
  expect((await erasures.run()).left).toEqual([]);
  expect(await load(fake, path)).toMatchObject({ complete: true });
  const left = [...mealsFrom(1, 30).map((_, n) => n + 1), 33, 34].filter((n) => n % 7 !== 5);
  expect(await numbersIn(fake)).toEqual(left);
  const n = left.length;
  expect(await fake.sql(COUNTS)).toEqual([`${n}|${n}|${n}|${foodsOf(left)}`]);
  expect(await load(fake, path)).toMatchObject({ files: 0, replaced: 0 });
});

test('keeps an event that another file has too when the first goes', async () => {
  const fake = await started();
  const [path, other] = [await temporaryFolder(), await temporaryFolder()];
  await archive(path, mealsFrom(1, 30));
  await archive(other, [mealEvent(3), mealEvent(99)]);
  // What no manifest lists has nothing to be missing from.
  rmSync(join(path, '_manifest.jsonl'));
  await load(fake, [path, other]);
  const [first = ''] = await dataFiles(path);
  rmSync(join(path, first));
  expect(await load(fake, [path, other])).toMatchObject({ replaced: 2 });
  const left = [
    ...mealsFrom(1, 30)
      .map((_, n) => n + 1)
      .filter((n) => n % 3 !== 0),
    3,
    99,
  ];
  expect(await numbersIn(fake)).toEqual(left.toSorted((a, b) => a - b));
});

test('fills a table that is added later from the whole archive', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 9));
  await load(fake, path, { wanted: ['events'] });
  expect(await load(fake, path, { wanted: ['meals'] })).toMatchObject({
    files: 3,
    rows: { events: 9, meals: 9 },
  });
  expect(await fake.sql('SELECT count(*) FROM meals_latest')).toEqual(['9']);
  expect(await numbersIn(fake)).toHaveLength(9);
});

test('an address that is none is a slip of usage', async () => {
  const path = await temporaryFolder();
  const { code, stderr } = await millrace(['load', path, '--to', 'bigquery:health']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('must be bigquery:PROJECT.DATASET')]);
});

const lack = lacksWorking('sqlglot (pip install sqlglot)', PYTHON, ['-c', 'import sqlglot']);

test.skipIf(lack !== null)(`sqlglot reads every statement of a load${skipped(lack)}`, async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 6));
  rmSync(join(path, '_manifest.jsonl'));
  await load(fake, path, { wanted: TABLES.ofEvents().map(({ definition }) => definition.name) });
  rmSync(join(path, (await dataFiles(path))[0] ?? ''));
  await load(fake, path);
  const input = JSON.stringify(
    fake.scripts.map((sql, n) => ({ dialect: 'bigquery', name: `script ${n}`, sql })),
  );
  const parse = join(import.meta.dirname, '../warehouse/parse.py');
  const { stdout } = spawnSync(PYTHON, [parse], { input, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const found = JSON.parse(stdout) as { error?: string; whole?: string[] }[];
  expect(found).toHaveLength(fake.scripts.length);
  expect(found.filter(({ error }) => error !== undefined)).toEqual([]);
  // Those it knows by their first word only.
  expect([...new Set(found.flatMap(({ whole = [] }) => whole))].filter((word) => word !== 'BEGIN')).toEqual(
    [],
  );
  // A view is read without a default dataset.
  const views = fake.scripts
    .flatMap((sql) => sql.split(';\n'))
    .filter((sql) => sql.startsWith('CREATE OR REPLACE VIEW'));
  expect(views.length).toBeGreaterThan(10);
  for (const view of views) expect(view).not.toMatch(/\b(?:VIEW|FROM|JOIN) `\w+`/);
});
