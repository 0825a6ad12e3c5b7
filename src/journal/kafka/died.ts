import type { Cluster } from './cluster.ts';
import { readRange } from './read-range.ts';
import type { Place } from './record.ts';
import type { Destination } from './settled.ts';

/** A delivery that became a dead letter. */
export interface Died extends Place {
  readonly destination: Destination;
}

/** Clocks differ: milliseconds by which a letter can seem older than its event. */
const SLACK = 60_000;

/**
 * The key of a dead letter's record: which delivery it is of.
 * @param print of the event, as the window has it
 * @param again as what it was retried
 */
export function letterKey(
  { sink, destination }: { readonly sink: string; readonly destination: Destination },
  print: string,
  again: string | null,
  place: Place | null,
): Buffer {
  const at = place === null ? [] : [place.partition, place.offset];
  return Buffer.from(JSON.stringify([sink, destination, print, again, ...at]));
}

/**
 * The deliveries of a sink that became dead letters, whatever became of these: whoever made a letter may have ended before it
 * had committed that. Letters that were taken out have left their keys, for as long as the brokers keep tombstones.
 * @param since when the oldest of their events was written, milliseconds since the epoch
 */
export async function diedSince(
  cluster: Cluster,
  topic: string,
  sink: string,
  since: number,
  signal: AbortSignal,
): Promise<readonly Died[]> {
  const all = [...(await cluster.topic(topic)).leaders.keys()];
  const first = await cluster.offsets(topic, all, since - SLACK);
  const last = await cluster.offsets(topic, all, 'latest');
  const found: Died[] = [];
  for (const partition of all) {
    const [from, to] = [first.get(partition) ?? -1, last.get(partition) ?? -1];
    if (from === -1 || from >= to) continue;
    await readRange(cluster, topic, partition, { from, to }, signal, ({ key }) => {
      const died = key === null ? null : diedIn(key, sink);
      if (died !== null) found.push(died);
    });
  }
  return found;
}

function diedIn(key: Buffer, sink: string): Died | null {
  try {
    const words: unknown = JSON.parse(String(key));
    if (!Array.isArray(words) || words[0] !== sink) return null;
    const [, destination, , , partition, offset] = words as unknown[];
    if (destination !== null && typeof destination !== 'string') return null;
    if (typeof partition !== 'number' || typeof offset !== 'number') return null;
    return { destination, partition, offset };
  } catch {
    return null;
  }
}
