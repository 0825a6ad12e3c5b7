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

/** What there is of a partition: from an offset on, up to before another. */
export interface Span {
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

/**
 * What there is of these partitions now. @throws where no broker says it of one
 * @param since milliseconds since the epoch; `from` is -1 where nothing is so young
 */
export async function spansOf(
  cluster: Cluster,
  topic: string,
  partitions: readonly number[],
  since: number | 'earliest' = 'earliest',
): Promise<readonly Span[]> {
  const first = await cluster.offsets(topic, partitions, since);
  const last = await cluster.offsets(topic, partitions, 'latest');
  return partitions.map((partition) => {
    const [from, to] = [first.get(partition), last.get(partition)];
    if (from === undefined || to === undefined)
      throw new Error(`no broker says where partition ${partition} of ${topic} begins and ends`);
    return { partition, from, to };
  });
}

/** All records from an offset up to before another that exist. Throws when they cannot be read. */
export async function readRange(
  cluster: Cluster,
  topic: string,
  partition: number,
  range: { readonly from: number; readonly to: number },
  signal: AbortSignal,
  use: (record: Read) => void,
): Promise<void> {
  for await (const { records } of pagesOf(cluster, topic, partition, range, signal))
    for (const record of records) use(record);
}

/** The same, as the brokers give them. */
export interface Page {
  readonly records: readonly Read[];
  /** Where it was begun to read: further on than asked for, where brokers have deleted what was there. */
  readonly from: number;
  /** Where to go on. */
  readonly next: number;
}

export async function* pagesOf(
  cluster: Cluster,
  topic: string,
  partition: number,
  { from, to }: { readonly from: number; readonly to: number },
  signal: AbortSignal,
): AsyncGenerator<Page> {
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
      yield { records: fetched.records.filter(({ offset }) => offset < to), from: at, next: fetched.next };
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
