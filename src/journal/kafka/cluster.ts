import { setTimeout as pause } from 'node:timers/promises';
import type { describeConfigsV4, fetchV17 } from '@platformatic/kafka';
import { Brokers, type Call } from '../../vendors/kafka/brokers.ts';
import type { Connection } from '../../vendors/kafka/connection.ts';
import { Groups } from './group.ts';
import type { RawRecord } from './record.ts';

/** A record with its place in its partition. */
export interface Read extends RawRecord {
  readonly offset: number;
  readonly key: Buffer | null;
  /** Milliseconds since the epoch, as its writer says. */
  readonly time: number;
}

/** What a fetch has brought of one partition. */
export interface Fetched {
  readonly partition: number;
  /** Of the protocol: `NONE`, `OFFSET_OUT_OF_RANGE`. */
  readonly error: string;
  readonly records: readonly Read[];
  /** Where to go on: behind the last record, which need not be one of those asked for. */
  readonly next: number;
}

/** What there is of a partition: from an offset on, up to before another. */
export interface Span {
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

/** Records as the brokers give them. */
export interface Page {
  readonly records: readonly Read[];
  /** Where it was begun to read: further on than asked for, where brokers have deleted what was there. */
  readonly from: number;
  /** Where to go on. */
  readonly next: number;
}

const EARLIEST = -2n;
const LATEST = -1n;
/** What is asked of a partition at a time. */
const PARTITION_BYTES = 1024 * 1024;
/** What is asked of a broker to read what is there. */
const FETCH = { bytes: 16 * 1024 * 1024, wait: 0 } as const;
/** Milliseconds between two tries, and how many there are. */
const PAUSE = 100;
const MOST_TRIES = 100;
const NEVER = new AbortController().signal;
/** The number of topics among what has settings. */
const TOPIC = 2 as const;

/**
 * The requests that reading takes. The package's own consumer joins a group anew, and reads ahead, without saying so first.
 */
export class Cluster {
  readonly #brokers: Brokers;
  readonly groups: Groups;

  private constructor(brokers: Brokers, timeout: number) {
    this.#brokers = brokers;
    this.groups = new Groups(brokers, timeout);
  }

  /** Connects nothing yet. @param patience milliseconds that a request may take which waits for others, beside `timeout` */
  static async load(connection: Connection, timeout: number, patience: number): Promise<Cluster> {
    return new Cluster(await Brokers.load(connection, timeout, timeout + patience), timeout);
  }

  async close(): Promise<void> {
    await this.#brokers.close();
  }

  /** The leader of each partition, and the topic's id. */
  topic(name: string, anew = false): Promise<{ id: string; leaders: readonly number[] }> {
    return this.#brokers.topic(name, anew);
  }

  /** The offset of the first record not older than `time`, of the first at all, or the one after the last, of partitions. */
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
      const answer = await this.#brokers.ask<{ readonly topics: readonly OffsetsOfTopic[] }>(
        'ListOffsets',
        leader,
        [-1, 0, topics],
      );
      for (const { partitionIndex, offset } of answer.topics[0]?.partitions ?? [])
        found.set(partitionIndex, Number(offset));
    }
    return found;
  }

  /**
   * What there is of partitions that one broker leads.
   * @param from offset to begin at, by partition
   * @param wait milliseconds that the broker waits for something new
   */
  async fetch(
    leader: number,
    topic: { readonly name: string; readonly id: string },
    from: ReadonlyMap<number, number>,
    { bytes, wait }: { readonly bytes: number; readonly wait: number },
  ): Promise<readonly Fetched[]> {
    const api =
      await this.#brokers.api<Call<Parameters<typeof fetchV17.createRequest>, fetchV17.FetchResponse>>(
        'Fetch',
      );
    const partitions = Array.from(from, ([partition, offset]) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: BigInt(offset),
      lastFetchedEpoch: -1,
      partitionMaxBytes: Math.min(bytes, PARTITION_BYTES),
    }));
    // Older brokers know topics by name.
    const topicId = api.version <= 12 ? topic.name : topic.id;
    const socket = await this.#brokers.node(leader);
    const work = api.async(socket, wait, 1, bytes, 0, 0, -1, [{ topicId, partitions }], [], '');
    const answer = await this.#brokers
      .soon(work, wait)
      .catch((error: unknown) => this.#brokers.answerIn(error) as fetchV17.FetchResponse);
    return (answer.responses[0]?.partitions ?? []).map((each) => this.#fetched(each, from));
  }

  /**
   * What there is of a topic now. @throws where no broker says it of a partition
   * @param since milliseconds since the epoch; `from` is -1 where nothing is so young
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

  /** All records from an offset up to before another that exist. Throws when they cannot be read. */
  async *pages(
    topic: string,
    { partition, from, to }: Span,
    signal: AbortSignal = NEVER,
  ): AsyncGenerator<Page> {
    let anew = false;
    for (let at = from, tries = 0; at < to;) {
      signal.throwIfAborted();
      const { id, leaders } = await this.topic(topic, anew);
      const leader = leaders[partition] ?? -1;
      const [fetched] = await this.fetch(leader, { name: topic, id }, new Map([[partition, at]]), FETCH);
      anew = fetched?.error !== 'NONE';
      if (fetched?.error === 'OFFSET_OUT_OF_RANGE') {
        const earliest = (await this.offsets(topic, [partition], 'earliest')).get(partition) ?? to;
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
        await pause(PAUSE);
      }
    }
  }

  /** The same, one by one. */
  async *records(topic: string, span: Span, signal: AbortSignal = NEVER): AsyncGenerator<Read> {
    for await (const page of this.pages(topic, span, signal)) yield* page.records;
  }

  /** The record at an offset, if there is one. */
  async recordAt(
    topic: string,
    partition: number,
    offset: number,
    signal: AbortSignal = NEVER,
  ): Promise<Read | null> {
    const end = (await this.offsets(topic, [partition], 'latest')).get(partition) ?? 0;
    const span = { partition, from: offset, to: Math.min(end, offset + 1) };
    for await (const record of this.records(topic, span, signal)) return record;
    return null;
  }

  /** What the brokers have been told of a topic, by key. */
  async settings(topic: string): Promise<ReadonlyMap<string, string>> {
    const asked = [{ resourceType: TOPIC, resourceName: topic, configurationKeys: null }];
    const { results } = await this.#brokers.ask<describeConfigsV4.DescribeConfigsResponse>(
      'DescribeConfigs',
      null,
      [asked, false, false] satisfies Parameters<typeof describeConfigsV4.createRequest>,
    );
    return new Map(results[0]?.configs.map(({ name, value }) => [name, value ?? '']));
  }

  #fetched(answer: fetchV17.FetchResponsePartition, from: ReadonlyMap<number, number>): Fetched {
    const { partitionIndex: partition, errorCode, records: batches } = answer;
    const begin = from.get(partition) ?? 0;
    const records: Read[] = [];
    let next = begin;
    for (const batch of batches ?? []) {
      const first = Number(batch.firstOffset);
      next = Math.max(next, first + batch.lastOffsetDelta + 1);
      // Marks of transactions are no records.
      if ((batch.attributes & this.#brokers.kafka.IS_CONTROL) !== 0) continue;
      for (const { key, value, headers, offsetDelta, timestampDelta } of batch.records) {
        const offset = first + offsetDelta;
        if (offset < begin) continue;
        records.push({ offset, key, value, headers, time: Number(batch.firstTimestamp + timestampDelta) });
      }
    }
    const error = this.#brokers.nameOf(errorCode);
    return { partition, error, records, next };
  }
}

interface OffsetsOfTopic {
  readonly partitions: readonly { readonly partitionIndex: number; readonly offset: bigint }[];
}
