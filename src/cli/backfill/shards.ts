import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseOutcomes, OUTCOMES } from '../../history/backfill/outcomes.ts';
import { Checkpoint } from '../../history/backfill/checkpoint.ts';
import { shardFolder, shardOf } from '../../history/backfill/plan.ts';
import { errorCode, readIfThere } from '../../lib/durable.ts';
import { readWhole } from '../../core/objects.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { usageError } from '../io.ts';
import { withStore, type Settings } from '../places.ts';

export type ShardsSummary = Awaited<ReturnType<typeof summariseShards>>;

/** `_backfill.ndjson` of each shard by folder; null for an incomplete shard. */
type Texts = ReadonlyMap<string, string | null>;

/**
 * Totals of all shards of a backfill.
 * @throws MillraceError usage when there are no shards, or shards of several backfills
 */
export async function summariseShards(out: string, storage: Settings, signal: AbortSignal) {
  const texts = isStoreUrl(out)
    ? await withStore(out, storage, (store) => textsInStore(store, signal))
    : textsInFolder(out);
  const all = [...texts.keys()].flatMap((folder) => shardOf(folder) ?? []);
  const [first] = all;
  if (first === undefined) throw usageError(`${out} has no folder of a shard, such as shard-1-of-4`);
  const other = all.find(({ of }) => of !== first.of);
  if (other !== undefined)
    throw usageError(
      `${out} has shards of two backfills, ${shardFolder(first)} and ${shardFolder(other)}: keep each in its own folder`,
    );
  const numbers = Array.from({ length: first.of }, (_, index) => index + 1);
  const folders = numbers.map((number) => shardFolder({ number, of: first.of }));
  /** Folders of incomplete shards, sorted. */
  const incomplete = folders.filter((folder) => (texts.get(folder) ?? null) === null);
  /** Folders with users who failed or were not pulled, sorted. */
  const failing = new Set<string>();
  const shardOfUser = new Map<string, string>();
  const sums: Record<string, number> = { meals: 0, meal_items: 0, rejects: 0 };
  const outcomes = { done: 0, failed: 0, not_connected: 0, not_pulled: 0 };
  for (const folder of folders) {
    for (const outcome of parseOutcomes(texts.get(folder) ?? '')) {
      const before = shardOfUser.get(outcome.user_id) ?? folder;
      if (before !== folder)
        throw usageError(`${outcome.user_id} is in ${before} and in ${folder}: these are of two backfills`);
      shardOfUser.set(outcome.user_id, folder);
      outcomes[outcome.status] += 1;
      if (outcome.status === 'failed' || outcome.status === 'not_pulled') failing.add(folder);
      for (const [name, count] of Object.entries(outcome.rows)) sums[name] = (sums[name] ?? 0) + count;
    }
  }
  const { rejects = 0, ...rows } = sums;
  const { meals = 0, meal_items = 0 } = rows;
  const counts = { users: shardOfUser.size, meals, meal_items, rows, rejects };
  return { shards: first.of, incomplete, failing: [...failing], ...counts, outcomes };
}

function textsInFolder(out: string): Texts {
  let names: string[];
  try {
    names = readdirSync(out);
  } catch (error) {
    throw usageError(`${out}: ${errorCode(error) ?? 'cannot be read'}`, { cause: error });
  }
  const folders = names.filter((name) => shardOf(name) !== null);
  return new Map(
    folders.map((folder) => {
      const isOpen = Checkpoint.isUnfinished(join(out, folder));
      return [folder, isOpen ? null : readIfThere(join(out, folder, OUTCOMES))];
    }),
  );
}

async function textsInStore(store: ObjectStore, signal: AbortSignal): Promise<Texts> {
  const keys = new Set<string>();
  for await (const { key } of store.list('shard-', signal)) keys.add(key);
  const texts = new Map<string, string | null>();
  for (const folder of new Set([...keys].map((key) => key.split('/')[0] ?? ''))) {
    if (shardOf(folder) === null) continue;
    const outcomes = `${folder}/${OUTCOMES}`;
    // files.json is uploaded last.
    const isWhole = keys.has(`${folder}/_backfill/files.json`) && keys.has(outcomes);
    texts.set(folder, isWhole ? (await readWhole(store, outcomes, signal)).toString() : null);
  }
  return texts;
}
