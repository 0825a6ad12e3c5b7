import type { Owners } from '../../core/erasure.ts';
import { USER_MALFORMED } from '../../core/ingest.ts';
import type { Cluster } from './cluster.ts';
import { pagesOf } from './read-range.ts';
import type { Records } from './records.ts';
import { namesNoUser, outsideOf } from './sealed.ts';

/** What was found of the owners in a topic that nothing can be taken out of. */
export interface Found {
  /** Records of theirs that are not sealed with a key of their own. */
  readonly records: number;
  /** False when the time was over before its end. */
  readonly isWhole: boolean;
}

/**
 * Looks through what a topic has now for records that an erasure of keys does not reach: those that are not sealed, and those
 * that name no user, which are sealed by team. Of all others only what stands outside is looked at.
 * @param end monotonic time at which it is given up
 */
export async function searchTopic(
  { cluster, topic, isSetAside, records, owners }: Searched,
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
      const some = page.records.filter((record) => {
        const outside = outsideOf(record);
        if (record.value === null || outside === 'damaged') return false;
        return isSetAside || outside === null || namesNoUser(outside);
      });
      for (const { kept } of await records.open(some)) {
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
  /** What is quarantined can name somebody else than it is sealed for. */
  readonly isSetAside: boolean;
  readonly records: Pick<Records, 'open'>;
  readonly owners: Owners;
}
