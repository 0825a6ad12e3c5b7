import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { openStore } from '../../src/storage/open.ts';
import { DeltaLog } from '../../src/export/delta/log.ts';
import { deltalake, lacksDeltalake } from './delta/deltalake.ts';
import { erasureOf } from './delta/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';
import { archive, duckdb, exported, mealEvent, mealOf } from './support.ts';

/** A followed export of meals of three days, and what it has to hold. */
async function following(format: 'parquet' | 'delta') {
  const [path, out] = [await temporaryFolder(), await temporaryFolder()];
  const expected = new Map<string, string>();
  const table = join(out, 'meals');
  return {
    path,
    out,
    table,
    add: async (from: number, to: number) => {
      const events: JournalEvent[] = [];
      for (let n = from; n <= to; n += 1) {
        events.push(mealEvent(n));
        expected.set(mealOf(n).id, `user-${n % 7}`);
      }
      await archive(path, events);
    },
    step: (today: string) => exported([path], out, { table: 'meals', format, today }),
    erase: async (user: string) => {
      const { run } = await erasureOf(user, format === 'delta' ? [path, out] : [path]);
      expect((await run()).left).toEqual([]);
      for (const [id, of] of expected) if (of === user) expected.delete(id);
    },
    expectRows: async () => {
      const files = (await live(out, format)).map((file) => `'${join(table, file)}'`);
      const sql = await duckdb();
      const found = await sql(
        `SELECT id FROM read_parquet([${files.join()}], union_by_name = true) ORDER BY id`,
      );
      expect(found.flat()).toEqual([...expected.keys()].toSorted());
    },
  };
}

/** Files of the meals: those that the Delta table lists, or all. */
async function live(out: string, format: string): Promise<string[]> {
  const names = readdirSync(join(out, 'meals'), { recursive: true, encoding: 'utf8' });
  if (format === 'parquet') return names.filter((name) => name.endsWith('.parquet'));
  const store = await openStore(out);
  const { files } = await new DeltaLog(store, 'meals/').snapshot();
  await store.close();
  return [...files.keys()];
}

/** How many files each day has. */
async function filesOf(out: string, format: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const file of await live(out, format)) {
    const day = /dt=([\d-]+)/.exec(file)?.[1] ?? '';
    counts[day] = (counts[day] ?? 0) + 1;
  }
  return counts;
}

describe.each(['parquet', 'delta'] as const)('a followed export, %s', (format) => {
  it('has one file a table of each day that is over, and continues after an erasure', async () => {
    const { out, add, step, erase, expectRows } = await following(format);
    for (let n = 0; n < 3; n += 1) {
      await add(1 + 9 * n, 9 + 9 * n);
      expect(await step('2026-11-23')).toMatchObject({ complete: true, problems: 0 });
      await expectRows();
      expect(await filesOf(out, format)).toEqual({ '2026-11-21': 1, '2026-11-22': 1, '2026-11-23': n + 1 });
    }
    await erase('user-3');
    await step('2026-11-23');
    await expectRows();
    await add(28, 36);
    await step('2026-11-24');
    await expectRows();
    const closed = { '2026-11-21': 1, '2026-11-22': 1, '2026-11-23': 1 };
    expect(await filesOf(out, format)).toEqual(closed);
    await erase('user-5');
    await step('2026-11-24');
    await expectRows();
    expect(await filesOf(out, format)).toEqual(closed);
    expect(await step('2026-11-25')).toMatchObject({ steps: 0, complete: true });
  });

  it('makes nothing again of a day that another one shares no step with', async () => {
    const { out, add, step } = await following(format);
    await add(1, 9);
    await step('2026-11-22');
    const before = await live(out, format);
    await add(10, 18);
    await step('2026-11-22');
    const after = await live(out, format);
    const stay = before.filter((file) => !file.includes('dt=2026-11-21'));
    expect(after).toEqual(expect.arrayContaining(stay));
  });
});

const lack = lacksDeltalake();
const ask = deltalake();

it.skipIf(lack !== null)(
  `a followed Delta table that another program compacts continues, through erasures${skipped(lack)}`,
  async () => {
    const { out, table, add, step, erase, expectRows } = await following('delta');
    const rows = async (): Promise<void> => {
      await expectRows();
      const { rows: found } = await ask<{ rows: unknown[] }>('rows', table, { columns: ['id'] });
      expect(found.length).toBeGreaterThan(0);
    };
    await add(1, 9);
    await step('2026-11-23');
    await add(10, 18);
    await step('2026-11-23');
    await erase('user-3');
    await step('2026-11-23');
    await rows();
    await add(19, 27);
    await step('2026-11-23');
    await ask('optimize', table);
    expect(await filesOf(out, 'delta')).toEqual({ '2026-11-21': 1, '2026-11-22': 1, '2026-11-23': 1 });
    await rows();
    await erase('user-5');
    await rows();
    await add(28, 36);
    await step('2026-11-23');
    await rows();
    await step('2026-11-24');
    await rows();
    await erase('user-1');
    await step('2026-11-24');
    await rows();
  },
);

it.skipIf(lack !== null)(
  `after a compaction of both, an erasure ends a followed Delta table by name, and no row is there twice${skipped(lack)}`,
  async () => {
    const { path, table, add, step, erase, expectRows } = await following('delta');
    await add(1, 9);
    await step('2026-11-23');
    await add(10, 18);
    await step('2026-11-23');
    await ask('optimize', table);
    const { code } = await millrace(['archive', 'compact', path, '--min-age', '0s', '--json']);
    expect(code).toBe(0);
    await erase('user-3');
    await expect(step('2026-11-23')).rejects.toMatchObject({ code: 'table_changed' });
    await expectRows();
  },
);

it('a signal between two steps ends it in order', async () => {
  const { path, out, add } = await following('parquet');
  await add(1, 9);
  const stop = new AbortController();
  const ended = millrace(
    ['export', path, '--out', out, '--table', 'meals', '--follow', '--every', '1m', '--json'],
    { signal: stop.signal },
  );
  await until('the end of the first step', () => {
    const names = readdirSync(out);
    return names.includes('meals') && !names.includes('.millrace-lock');
  });
  stop.abort();
  expect(await ended).toMatchObject({ code: 0, signal: null });
});

it.each([
  [['--follow', '--every', '30s'], 'must be at least 1m'],
  [['--follow', '--again'], "cannot be used with option '--again'"],
  [['--every', '2h'], '--every needs --follow'],
])('%j is refused', async (flags, reason) => {
  const args = ['export', 'made-up', '--out', 'made-up', ...flags];
  expect(await millrace(args)).toMatchObject({ code: 2, stderr: expect.stringContaining(reason) as string });
});
