import { Owners, type ErasureRun } from '../../core/erasure.ts';
import { USER_MALFORMED } from '../../core/ingest.ts';
import type { Cluster } from './cluster.ts';
import { recordedEventOf, type RecordedEvent } from './record.ts';
import type { SetAsideTopic } from './set-aside-topic.ts';

const STORE = 'journal';
const PAGE = 200;
/** Milliseconds for the search in all topics. */
const SEARCH = 60_000;
/** Defaults of the brokers. */
const WEEK = 604_800_000;
const [BROKERS_DELAY, FILE_DELAY] = [300_000, 60_000];
const CENTURY = 100 * 365 * 86_400_000;

/**
 * Removes set-aside events of the subjects by tombstones, and then searches all topics for records of them. Nothing can be
 * removed from the topic of events: deliverers skip these records, and the receipt says until when brokers keep a topic.
 */
export async function eraseFromTopics(
  cluster: Cluster,
  events: string,
  setAside: readonly SetAsideTopic[],
  { subjects, signal, record, leave, onStep }: ErasureRun,
): Promise<void> {
  const owners = new Owners(subjects);
  for (const topic of setAside) {
    const removed = await removeFrom(topic, owners, signal);
    if (Object.keys(removed).length > 0)
      await record({ store: STORE, item: topic.name, removed, sha256_before: null, sha256_after: null });
    onStep(`topic ${topic.name}`);
  }
  const end = performance.now() + SEARCH;
  for (const topic of [events, ...setAside.map(({ name }) => name)]) {
    const found = await countIn(topic, cluster, owners, end, signal);
    onStep(`searched ${topic}`);
    if (found === 0) continue;
    const until = await keptUntil(cluster, topic);
    const why = found === null ? `the search did not end within ${SEARCH / 1000} s` : recordsOf(found);
    leave({
      store: STORE,
      item: `topic ${topic}: the brokers keep what it had ${until}`,
      requests: [],
      reason: `${why}; brokers delete whole segments, by their age`,
    });
  }
}

/** @returns how many events it removed, by request */
async function removeFrom(
  aside: SetAsideTopic,
  owners: Owners,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const removed: Record<string, number> = {};
  for (let after = 0; ;) {
    signal.throwIfAborted();
    const page = await aside.list({ after, limit: PAGE }, true);
    const last = page.at(-1);
    if (last === undefined) return removed;
    after = last.key;
    for (const { name, recorded } of page) {
      const requests = requestsOf(recorded, owners);
      if (requests.length > 0) await aside.remove(name);
      for (const request of requests) removed[request] = (removed[request] ?? 0) + 1;
    }
  }
}

function requestsOf({ event, reasons }: RecordedEvent, owners: Owners): readonly string[] {
  const isMalformed = reasons.some(({ code }) => code === USER_MALFORMED);
  return owners.ofEvent(event, isMalformed);
}

/**
 * Counts the records of the owners.
 * @param end monotonic time
 * @returns null when the search did not end before
 */
async function countIn(
  topic: string,
  cluster: Cluster,
  owners: Owners,
  end: number,
  signal: AbortSignal,
): Promise<number | null> {
  let found = 0;
  for (const span of await cluster.spans(topic))
    for await (const { records } of cluster.pages(topic, span, signal)) {
      if (performance.now() > end) return null;
      for (const record of records) {
        const recorded = recordedEventOf(record);
        if (recorded !== null && requestsOf(recorded, owners).length > 0) found += 1;
      }
    }
  return found;
}

function recordsOf(count: number): string {
  return count === 1 ? '1 of its records is of the user' : `${count} of its records are of the user`;
}

async function keptUntil(cluster: Cluster, topic: string): Promise<string> {
  const settings = await cluster.settings(topic).catch(() => null);
  if (settings === null) return 'for as long as their settings say, which could not be asked';
  return keptUntilBy(settings, Date.now());
}

/** When the last record that a topic has now is gone, in words. @param settings of the topic, as brokers name them */
export function keptUntilBy(settings: ReadonlyMap<string, string>, now: number): string {
  const number = (name: string, otherwise: number): number => Number(settings.get(name) ?? otherwise);
  const roll = number('segment.ms', WEEK);
  const day = (ms: number): string => new Date(now + ms).toISOString();
  if (settings.get('cleanup.policy')?.includes('compact') === true) {
    const most = number('max.compaction.lag.ms', Number.MAX_SAFE_INTEGER);
    if (most > CENTURY) return 'until they compact it (max.compaction.lag.ms sets no end)';
    return `until ${day(most + roll)}`;
  }
  const retention = number('retention.ms', WEEK);
  if (retention < 0) return 'for ever (retention.ms is -1)';
  if (retention + roll > CENTURY) return 'for more than a hundred years';
  // A segment is as old as its youngest record; its file is deleted after a delay.
  return `until ${day(retention + roll + BROKERS_DELAY + number('file.delete.delay.ms', FILE_DELAY))} at the latest`;
}
