import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster, Fetched, Read } from './cluster.ts';

const FETCH = { bytes: 16 * 1024 * 1024, wait: 0 } as const;
/** Milliseconds between two tries. */
const PAUSE = 100;
const MOST_TRIES = 100;

/** The record at an offset, if there is one. */
export async function recordAt(
  cluster: Cluster,
  topic: string,
  partition: number,
  offset: number,
  signal: AbortSignal,
): Promise<Read | null> {
  const end = (await cluster.offsets(topic, [partition], 'latest')).get(partition) ?? 0;
  let found: Read | null = null;
  await readRange(
    cluster,
    topic,
    partition,
    { from: offset, to: Math.min(end, offset + 1) },
    signal,
    (record) => {
      found ??= record;
    },
  );
  return found;
}

/** All records from an offset up to before another that exist. Throws when they cannot be read. */
export async function readRange(
  cluster: Cluster,
  topic: string,
  partition: number,
  { from, to }: { readonly from: number; readonly to: number },
  signal: AbortSignal,
  use: (record: Read) => void,
): Promise<void> {
  let anew = false;
  for (let at = from, tries = 0; at < to;) {
    signal.throwIfAborted();
    const { id, leaders } = await cluster.topic(topic, anew);
    const leader = leaders[partition] ?? -1;
    const fetched: Fetched | undefined = (
      await cluster.fetch(leader, { name: topic, id }, new Map([[partition, at]]), FETCH)
    )[0];
    anew = fetched?.error !== 'NONE';
    if (fetched?.error === 'OFFSET_OUT_OF_RANGE') {
      const earliest = (await cluster.offsets(topic, [partition], 'earliest')).get(partition) ?? to;
      // Deleted since; nothing is left before the end of a topic that was made anew.
      if (earliest <= at) return;
      at = earliest;
    } else if (fetched !== undefined && fetched.error === 'NONE' && fetched.next > at) {
      for (const record of fetched.records) if (record.offset < to) use(record);
      at = fetched.next;
      tries = 0;
    } else {
      tries += 1;
      if (tries > MOST_TRIES)
        throw new Error(`topic ${topic}, partition ${partition}: ${fetched?.error ?? 'nothing'} at ${at}`);
      await wait(PAUSE);
    }
  }
}
