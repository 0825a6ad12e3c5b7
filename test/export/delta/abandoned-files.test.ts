import { copyFileSync, existsSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { openStore } from '../../../src/storage/open.ts';
import { erasing } from '../../privacy/erase/objects-support.ts';
import { exporting, filesBelow, mealEvent } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { eraseFrom } from './support.ts';

const MINUTE = 60_000;

/** A store whose clock is behind ours. */
function behind(store: ObjectStore, by: number): ObjectStore {
  const { head, list } = { head: store.head.bind(store), list: store.list.bind(store) };
  store.head = async (...args) => {
    const found = await head(...args);
    return found === null ? null : { ...found, modifiedAt: found.modifiedAt - by };
  };
  store.list = async function* (...args) {
    for await (const found of list(...args)) yield { ...found, modifiedAt: found.modifiedAt - by };
  };
  return store;
}

// A writer of a table puts its files, and then the commit that lists them: without the files all readers would fail.
test.each([
  { by: 11 * MINUTE, age: MINUTE, isLeft: true },
  { by: 11 * MINUTE, age: 11 * MINUTE, isLeft: false },
  { by: -11 * MINUTE, age: MINUTE, isLeft: true },
  { by: -11 * MINUTE, age: 11 * MINUTE, isLeft: false },
])(
  'clocks $by ms apart: a file of $age ms that no version of the table lists is left: $isLeft',
  async ({ by, age, isLeft }) => {
    const delta = { format: 'delta', table: 'meals' } as const;
    const { out, table, run } = await exporting([mealEvent(2), mealEvent(3)], delta);
    await run();
    const [part = 'the table has no file'] = filesBelow(table, /part-[^/]*\.parquet$/);
    const unlisted = join(table, part.replace('part-', 'unlisted-'));
    copyFileSync(join(table, part), unlisted);
    const at = (Date.now() - age) / 1000;
    utimesSync(unlisted, at, at);
    const erasures = erasing(await temporaryFolder(), out, {}, (store) => behind(store, by));
    await erasures.request({ by: 'user', id: 'user-3', team: null }, true);
    const { left } = await erasures.run();
    const reasons = [...new Set(left.map(({ reason }) => reason))];
    expect(reasons).toEqual(
      isLeft ? ['another program has written it a moment ago, and not yet used it'] : [],
    );
    expect(existsSync(unlisted)).toBe(isLeft);
    expect(existsSync(join(table, part))).toBe(false);
  },
);

const partOf = (table: string): string => filesBelow(table, /part-[^/]*\.parquet$/)[0] ?? 'none';

test('a file whose name is the escaped name of one without rows of the user is searched all the same', async () => {
  const delta = { format: 'delta', table: 'meals' } as const;
  const [clean, other] = [await exporting([mealEvent(2)], delta), await exporting([mealEvent(3)], delta)];
  await clean.run();
  await other.run();
  const { table } = clean;
  const commit = join(table, filesBelow(table, /_delta_log.*\.json$/)[0] ?? 'none');
  writeFileSync(commit, readFileSync(commit, 'utf8').replaceAll(partOf(table), 'made%20up.parquet'));
  renameSync(join(table, partOf(table)), join(table, 'made up.parquet'));
  const unlisted = join(table, 'made%20up.parquet');
  copyFileSync(join(other.table, partOf(other.table)), unlisted);
  utimesSync(unlisted, 0, 0);
  const { left } = await eraseFrom(await openStore(table), '', 'user-3');
  expect(left).toEqual([]);
  expect(existsSync(unlisted)).toBe(false);
  expect(existsSync(join(table, 'made up.parquet'))).toBe(true);
});
