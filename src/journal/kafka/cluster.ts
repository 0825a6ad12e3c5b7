import type { describeConfigsV4, fetchV17 } from '@platformatic/kafka';
import { Brokers, type Call } from '../../sinks/kafka/brokers.ts';
import type { Connection } from '../../sinks/kafka/connection.ts';
import { Groups } from './groups.ts';
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
  /** The offset after the last record that all in-sync replicas have. */
  readonly end: number;
}

const EARLIEST = -2n;
const LATEST = -1n;
/** What is asked of a partition at a time. */
const PARTITION_BYTES = 1024 * 1024;
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
      const answer = await this.#brokers.ask<unknown[], { readonly topics: readonly OffsetsOfTopic[] }>(
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

  /** What the brokers have been told of a topic, by key. */
  async settings(topic: string): Promise<ReadonlyMap<string, string>> {
    const asked = [{ resourceType: TOPIC, resourceName: topic, configurationKeys: null }];
    const { results } = await this.#brokers.ask<
      Parameters<typeof describeConfigsV4.createRequest>,
      describeConfigsV4.DescribeConfigsResponse
    >('DescribeConfigs', null, [asked, false, false]);
    return new Map(results[0]?.configs.map(({ name, value }) => [name, value ?? '']));
  }

  #fetched(answer: fetchV17.FetchResponsePartition, from: ReadonlyMap<number, number>): Fetched {
    const { partitionIndex: partition, errorCode, highWatermark, records: batches } = answer;
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
    return { partition, error, records, next, end: Number(highWatermark) };
  }
}

interface OffsetsOfTopic {
  readonly partitions: readonly { readonly partitionIndex: number; readonly offset: bigint }[];
}
