import { setTimeout as pause } from 'node:timers/promises';
import type { API, describeConfigsV4, fetchV17, listOffsetsV9 } from '@platformatic/kafka';
import { NEVER } from '../../lib/abort.ts';
import { answerIn, Brokers, codeName, type Kafka } from '../../vendors/kafka/brokers.ts';
import type { Connection } from '../../vendors/kafka/connection.ts';
import { Group } from './group.ts';
import type { RawRecord } from './record.ts';

/** A record with its offset in its partition. */
export interface FetchedRecord extends RawRecord {
  readonly offset: number;
  readonly key: Buffer | null;
  /** Milliseconds since the epoch, as its writer says. */
  readonly time: number;
}

/** The answer to a fetch, for one partition. */
export interface Fetched {
  readonly partition: number;
  /** The protocol's name: `NONE`, `OFFSET_OUT_OF_RANGE`. */
  readonly error: string;
  readonly records: readonly FetchedRecord[];
  /** The offset to fetch next. */
  readonly next: number;
}

/** Offsets of a partition from `from` up to before `to`. */
export interface Span {
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

export interface Page {
  readonly records: readonly FetchedRecord[];
  /** The offset that the page begins at: later than the one asked for, if brokers have deleted what was there. */
  readonly from: number;
  /** The offset that the next page begins at. */
  readonly next: number;
}

interface FetchLimits {
  readonly bytes: number;
  /** Milliseconds that the broker waits for new records. */
  readonly wait: number;
}

type FetchApi = API<Parameters<typeof fetchV17.createRequest>, fetchV17.FetchResponse>;

const EARLIEST = -2n;
const LATEST = -1n;
const PARTITION_BYTES = 1024 * 1024;
const PAGE: FetchLimits = { bytes: 16 * 1024 * 1024, wait: 0 };
/** One batch, which brokers send whole. */
const ONE_BATCH: FetchLimits = { bytes: 1, wait: 0 };
/** Milliseconds between two tries, and how many there are. */
const PAUSE = 100;
const MOST_TRIES = 100;
/** The protocol's number of topics among the resources that have settings. */
const TOPIC = 2 as const;

/**
 * The requests for reading. The package's consumer is not used: it joins a group again, and reads ahead, without saying so
 * before.
 */
export class Cluster extends Brokers {
  /** Connects nothing yet. @param patience milliseconds beside `timeout` for a request that waits for other members */
  constructor(connection: Connection, timeout: number, patience = 0) {
    super(connection, timeout, timeout + patience);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  group(name: string, topic: string): Group {
    return new Group(this, name, topic);
  }

  /** By partition the offset of its first record, the first one not older than `time`, or the one after the last. */
  async offsets(
    topic: string,
    partitions: readonly number[],
    time: number | 'earliest' | 'latest',
  ): Promise<ReadonlyMap<number, number>> {
    const timestamp = time === 'earliest' ? EARLIEST : time === 'latest' ? LATEST : BigInt(Math.floor(time));
    const { leaders } = await this.topic(topic, true);
    const found = new Map<number, number>();
    for (const [leader, own] of Map.groupBy(partitions, (each) => leaders[each] ?? -1)) {
      const asked = own.map((partitionIndex) => ({ partitionIndex, currentLeaderEpoch: -1, timestamp }));
      const topics = [{ name: topic, partitions: asked }];
      const args = [-1, 0, topics];
      type Answer = listOffsetsV9.ListOffsetsResponse;
      const answer = await this.ask<Answer>('ListOffsets', leader, args);
      for (const { partitionIndex, offset } of answer.topics[0]?.partitions ?? [])
        found.set(partitionIndex, Number(offset));
    }
    return found;
  }

  /** Fetches from partitions that one broker leads. @param from offset to begin at, by partition */
  async fetch(
    leader: number,
    topic: { readonly name: string; readonly id: string },
    from: ReadonlyMap<number, number>,
    { bytes, wait }: FetchLimits,
  ): Promise<readonly Fetched[]> {
    const kafka = await this.kafka();
    const api = await this.api<FetchApi>('Fetch');
    const partitions = Array.from(from, ([partition, offset]) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: BigInt(offset),
      lastFetchedEpoch: -1,
      partitionMaxBytes: Math.min(bytes, PARTITION_BYTES),
    }));
    // Up to version 12 topics are named; later they have their id.
    const topicId = api.version <= 12 ? topic.name : topic.id;
    const socket = await this.node(leader);
    const work = api.async(socket, wait, 1, bytes, 0, 0, -1, [{ topicId, partitions }], [], '');
    const answer = await this.soon(work, wait).catch(
      (error: unknown) => answerIn(error) as fetchV17.FetchResponse,
    );
    return (answer.responses[0]?.partitions ?? []).map((each) => fetchedOf(kafka, each, from));
  }

  /**
   * The records that a topic has now. @throws Error when no broker answers for a partition
   * @param since milliseconds since the epoch; `from` is -1 where all records are older
   */
  async spans(topic: string, since: number | 'earliest' = 'earliest'): Promise<readonly Span[]> {
    const partitions = [...(await this.topic(topic, true)).leaders.keys()];
    const first = await this.offsets(topic, partitions, since);
    const last = await this.offsets(topic, partitions, 'latest');
    return partitions.map((partition) => {
      const [from, to] = [first.get(partition), last.get(partition)];
      if (from === undefined || to === undefined)
        throw new Error(`no broker says where partition ${partition} of ${topic} begins and ends`);
      return { partition, from, to };
    });
  }

  /** All records of a span that exist. @throws Error when they cannot be read */
  async *pages(
    topic: string,
    { partition, from, to }: Span,
    signal: AbortSignal = NEVER,
    limits = PAGE,
  ): AsyncGenerator<Page> {
    let hasMoved = false;
    for (let at = from, tries = 0; at < to;) {
      signal.throwIfAborted();
      const { id, leaders } = await this.topic(topic, hasMoved);
      const leader = leaders[partition] ?? -1;
      const [fetched] = await this.fetch(leader, { name: topic, id }, new Map([[partition, at]]), limits);
      hasMoved = fetched?.error !== 'NONE';
      if (fetched?.error === 'OFFSET_OUT_OF_RANGE') {
        const earliest = (await this.offsets(topic, [partition], 'earliest')).get(partition) ?? to;
        // Deleted since; or the topic was created again, and ends before.
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
        await pause(PAUSE);
      }
    }
  }

  /** The first record of a span; null when there is none. */
  async first(topic: string, span: Span, signal?: AbortSignal): Promise<FetchedRecord | null> {
    for await (const { records } of this.pages(topic, span, signal, ONE_BATCH))
      if (records[0] !== undefined) return records[0];
    return null;
  }

  /** The settings of a topic, by key. */
  async settings(topic: string): Promise<ReadonlyMap<string, string>> {
    const asked = [{ resourceType: TOPIC, resourceName: topic, configurationKeys: null }];
    const { results } = await this.ask<describeConfigsV4.DescribeConfigsResponse>('DescribeConfigs', null, [
      asked,
      false,
      false,
    ] satisfies Parameters<typeof describeConfigsV4.createRequest>);
    return new Map(results[0]?.configs.map(({ name, value }) => [name, value ?? '']));
  }
}

function fetchedOf(
  kafka: Kafka,
  { partitionIndex: partition, errorCode, records: batches }: fetchV17.FetchResponsePartition,
  from: ReadonlyMap<number, number>,
): Fetched {
  const begin = from.get(partition) ?? 0;
  const records: FetchedRecord[] = [];
  let next = begin;
  for (const batch of batches ?? []) {
    const first = Number(batch.firstOffset);
    next = Math.max(next, first + batch.lastOffsetDelta + 1);
    // Marks of transactions are no records.
    if ((batch.attributes & kafka.IS_CONTROL) !== 0) continue;
    for (const { key, value, headers, offsetDelta, timestampDelta } of batch.records) {
      const offset = first + offsetDelta;
      if (offset < begin) continue;
      records.push({ offset, key, value, headers, time: Number(batch.firstTimestamp + timestampDelta) });
    }
  }
  return { partition, error: codeName(kafka, errorCode), records, next };
}
