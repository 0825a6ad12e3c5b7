import type { Owners } from '../../core/erasure.ts';
import { USER_MALFORMED } from '../../core/ingest.ts';
import type { Cluster } from './cluster.ts';
import { pagesOf } from './read-range.ts';
import { keptOf } from './record.ts';

/** What was found of the owners in a topic that nothing can be taken out of. */
export interface Found {
  /** Records of theirs. */
  readonly records: number;
  /** False when the time was over before its end. */
  readonly isWhole: boolean;
}

/**
 * Looks through what a topic has now for records of the owners.
 * @param end monotonic time at which it is given up
 */
export async function searchTopic(
  { cluster, topic, owners }: Searched,
  end: number,
  signal: AbortSignal,
): Promise<Found> {
  const all = [...(await cluster.topic(topic, true)).leaders.keys()];
  const first = await cluster.offsets(topic, all, 'earliest');
  const last = await cluster.offsets(topic, all, 'latest');
  let found = 0;
  for (const partition of all) {
    const range = { from: first.get(partition) ?? 0, to: last.get(partition) ?? 0 };
    for await (const page of pagesOf(cluster, topic, partition, range, signal)) {
      if (performance.now() > end) return { records: found, isWhole: false };
      for (const record of page.records) {
        const kept = keptOf(record);
        const isMalformed = kept?.reasons.some(({ code }) => code === USER_MALFORMED) === true;
        if (kept !== null && owners.ofEvent(kept.event, isMalformed).length > 0) found += 1;
      }
    }
  }
  return { records: found, isWhole: true };
}

interface Searched {
  readonly cluster: Cluster;
  readonly topic: string;
  readonly owners: Owners;
}
