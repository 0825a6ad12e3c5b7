import { Owners, type ErasureRun } from '../../core/erasure.ts';
import { USER_MALFORMED } from '../../core/ingest.ts';
import type { Cluster } from './cluster.ts';
import { keptOf, type Kept } from './record.ts';
import type { SetAsideTopic } from './set-aside-topic.ts';

export interface ErasedTopics {
  /** The topic of events, which nobody can take anything out of. */
  readonly events: string;
  /** By the name of the topic. */
  readonly setAside: ReadonlyMap<string, SetAsideTopic>;
  readonly connect: () => Promise<Cluster>;
}

const STORE = 'journal';
/** Milliseconds for looking through the topics. */
const SEARCH = 60_000;
/** What brokers do unless they are told otherwise. */
const WEEK = 604_800_000;
const [BROKERS_DELAY, FILE_DELAY] = [300_000, 60_000];

/**
 * Takes out what can be taken out, by tombstones: what is set aside. Then the topics are looked through for what that does not
 * reach. The receipt says until when the brokers keep it, and nothing of topics where there is none; deliverers pass it over.
 */
export async function eraseFromTopics(topics: ErasedTopics, run: ErasureRun): Promise<void> {
  const { events, setAside, connect } = topics;
  const { subjects, signal, record, leave, onStep } = run;
  const owners = new Owners(subjects);
  for (const [topic, aside] of setAside) {
    const removed: Record<string, number> = {};
    for (let after = 0; ;) {
      signal.throwIfAborted();
      const page = await aside.list({ after, limit: PAGE }, true);
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.key;
      for (const { place, kept } of page) {
        const requests = requestsOf(kept, owners);
        if (requests.length > 0) await aside.remove(place);
        for (const request of requests) removed[request] = (removed[request] ?? 0) + 1;
      }
    }
    if (Object.keys(removed).length > 0)
      await record({ store: STORE, item: topic, removed, sha256_before: null, sha256_after: null });
    onStep(`topic ${topic}`);
  }
  const cluster = await connect();
  const end = performance.now() + SEARCH;
  for (const topic of [events, ...setAside.keys()]) {
    const found = await searchTopic(cluster, topic, owners, end, signal);
    onStep(`searched ${topic}`);
    if (found.isWhole && found.records === 0) continue;
    const until = await keptUntil(cluster, topic);
    const reason = found.isWhole
      ? `${found.records} of its records are of the user; brokers delete whole segments, by their age`
      : `it could not be looked through in ${SEARCH / 1000} s; brokers delete whole segments, by their age`;
    leave({
      store: STORE,
      item: `topic ${topic}: the brokers keep what it had ${until}`,
      requests: [],
      reason,
    });
  }
}

const PAGE = 200;

function requestsOf({ event, reasons }: Kept, owners: Owners): readonly string[] {
  const isMalformed = reasons.some(({ code }) => code === USER_MALFORMED);
  return owners.ofEvent(event, isMalformed);
}

/** How many of its records are of the owners, and whether it was looked through to its end. */
interface Found {
  readonly records: number;
  readonly isWhole: boolean;
}

/** @param end monotonic time at which it is given up */
async function searchTopic(
  cluster: Cluster,
  topic: string,
  owners: Owners,
  end: number,
  signal: AbortSignal,
): Promise<Found> {
  let found = 0;
  for (const span of await cluster.spans(topic)) {
    for await (const page of cluster.pages(topic, span, signal)) {
      if (performance.now() > end) return { records: found, isWhole: false };
      for (const record of page.records) {
        const kept = keptOf(record);
        if (kept !== null && requestsOf(kept, owners).length > 0) found += 1;
      }
    }
  }
  return { records: found, isWhole: true };
}

async function keptUntil(cluster: Cluster, topic: string): Promise<string> {
  const settings = await cluster.settings(topic).catch(() => null);
  if (settings === null) return 'for as long as they are told, which could not be asked';
  return keptUntilBy(settings, Date.now());
}

/** When the last of what is in a topic now is gone, in words. @param settings of the topic, as brokers name them */
export function keptUntilBy(settings: ReadonlyMap<string, string>, now: number): string {
  const number = (name: string, otherwise: number): number => Number(settings.get(name) ?? otherwise);
  const roll = number('segment.ms', WEEK);
  const day = (ms: number): string => new Date(now + ms).toISOString();
  if (settings.get('cleanup.policy')?.includes('compact') === true) {
    const most = number('max.compaction.lag.ms', Number.MAX_SAFE_INTEGER);
    if (most > FAR) return 'until they compact it (max.compaction.lag.ms sets no end)';
    return `until ${day(most + roll)}`;
  }
  const retention = number('retention.ms', WEEK);
  if (retention < 0) return 'for ever (retention.ms is -1)';
  if (retention + roll > FAR) return 'for more than a hundred years';
  // A segment counts as as old as its youngest record; its file is left for a moment.
  return `until ${day(retention + roll + BROKERS_DELAY + number('file.delete.delay.ms', FILE_DELAY))} at the latest`;
}

const FAR = 100 * 365 * 86_400_000;
