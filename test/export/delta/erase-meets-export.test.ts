import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { DeltaLog } from '../../../src/export/delta/log.ts';
import { openStore } from '../../../src/storage/open.ts';
import { duckdb, exported, exporting, filesBelow, mealEvents } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { eraseFrom } from './support.ts';

const GONE = 'user-3';
const meals = mealEvents(1, 21);

/** An export, and what it is once all has been exported again: other files, and those of before are gone. */
async function made() {
  const delta = { format: 'delta', table: 'meals', partition: 'none' } as const;
  const { path, out: before, run, grow } = await exporting(meals.slice(0, 9), delta);
  await run();
  await grow(meals.slice(9));
  const later = await temporaryFolder();
  cpSync(before, later, { recursive: true });
  await exported([path], later, { ...delta, again: true });
  return { before, later };
}

async function two({ before, later }: Awaited<ReturnType<typeof made>>) {
  const out = await temporaryFolder();
  cpSync(before, out, { recursive: true });
  /** The export's commits happen now. */
  const happen = (): void => {
    cpSync(join(later, 'meals'), join(out, 'meals'), { recursive: true });
    for (const name of parts(join(out, 'meals')))
      if (!parts(join(later, 'meals')).includes(name) && !name.includes('.kept-'))
        rmSync(join(out, 'meals', name));
    for (const name of readdirSync(join(out, 'meals/_delta_log')))
      if (!readdirSync(join(later, 'meals/_delta_log')).includes(name))
        rmSync(join(out, 'meals/_delta_log', name));
  };
  return { out, happen };
}

function parts(table: string): string[] {
  return filesBelow(table, /(?:^|\/)part-[^/]*$/);
}

/** After the erasure's commit, the export's would be another one. */
function hasCommitted(out: string): boolean {
  return readdirSync(join(out, 'meals/_delta_log')).includes(`${String(2).padStart(20, '0')}.json`);
}

/** Files that the table consists of, and others beside them. */
async function filesOf(out: string): Promise<{ live: string[]; all: string[] }> {
  const store = await openStore(out);
  const { files } = await new DeltaLog(store, 'meals/').snapshot();
  await store.close();
  return { live: [...files.keys()].sort(), all: parts(join(out, 'meals')) };
}

async function usersIn(out: string): Promise<unknown[]> {
  const sql = await duckdb();
  return (
    await sql(`SELECT DISTINCT user_id FROM read_parquet('${out}/meals/**/part-*.parquet') ORDER BY 1`)
  ).flat();
}

it('an erasure that meets an export of the same Delta table, before any of its reads: the rows go, and no file is left over', async () => {
  const states = await made();
  for (let nth = 1; ; nth += 1) {
    const { out, happen } = await two(states);
    const store = await openStore(out);
    let reads = 0;
    const meeting: ObjectStore = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          if (name === 'get' && !hasCommitted(out) && (reads += 1) === nth) happen();
          return Reflect.apply(value, target, args);
        };
      },
    });
    const { left } = await eraseFrom(meeting, 'meals/', GONE);
    await store.close();
    if (reads < nth) return;
    expect([nth, left]).toEqual([nth, []]);
    const { live, all } = await filesOf(out);
    expect([nth, all]).toEqual([nth, live]);
    expect(await usersIn(out)).toEqual(['user-0', 'user-1', 'user-2', 'user-4', 'user-5', 'user-6']);
  }
});
