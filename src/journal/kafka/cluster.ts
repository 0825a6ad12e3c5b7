import type {
  API,
  Base,
  Connection as Socket,
  describeConfigsV4,
  fetchV17,
  joinGroupV9,
  offsetFetchV9,
} from '@platformatic/kafka';
import { within } from '../../lib/abort.ts';
import { clientOptions, quiet, type Connection } from '../../sinks/kafka/connection.ts';
import type { RawRecord } from './record.ts';

type Kafka = typeof import('@platformatic/kafka');

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

/** A member of a consumer group in one generation of it. */
export interface Member {
  readonly group: string;
  readonly id: string;
  readonly generation: number;
}

/** What a group has committed of a partition: where to go on, and a text of its own. */
export interface Committed {
  readonly offset: number;
  readonly text: string;
}

export interface Joined extends Member {
  /** Of all members, where this one has to say who gets what; else empty. */
  readonly members: readonly { readonly id: string; readonly metadata: Buffer }[];
}

const EARLIEST = -2n;
const LATEST = -1n;
/** What is asked of a partition at a time. */
const PARTITION_BYTES = 1024 * 1024;
/** The number of topics among what has settings. */
const TOPIC = 2 as const;
const PROTOCOL = { type: 'consumer', name: 'millrace' } as const;

type Call<Args extends unknown[], Result> = API<Args, Result>;

/**
 * The requests that reading in a group takes: of the package the connections, the metadata and the encoding. Its own
 * consumer joins a group anew, and reads ahead, without saying so first.
 */
export class Cluster {
  readonly #kafka: Kafka;
  readonly #base: Base;
  readonly #timeout: number;

  private constructor(kafka: Kafka, base: Base, timeout: number) {
    this.#kafka = kafka;
    this.#base = base;
    this.#timeout = timeout;
  }

  /** Connects nothing yet. @param patience milliseconds that a request may take which waits for others, beside `timeout` */
  static async load(connection: Connection, timeout: number, patience: number): Promise<Cluster> {
    const kafka = await import('@platformatic/kafka');
    const base = new kafka.Base({
      ...clientOptions(connection, timeout),
      requestTimeout: timeout + patience,
    });
    quiet(base);
    return new Cluster(kafka, base, timeout);
  }

  async close(): Promise<void> {
    await this.#base.close().catch(() => undefined);
  }

  /** The leader of each partition, and the topic's id. */
  async topic(name: string, anew = false): Promise<{ id: string; leaders: readonly number[] }> {
    const metadata = await this.#soon(this.#base.metadata({ topics: [name], forceUpdate: anew }));
    const found = metadata.topics.get(name);
    if (found === undefined) throw new Error(`Unknown topic ${name}.`);
    return { id: found.id, leaders: found.partitions.map(({ leader }) => leader) };
  }

  /** The offset of the first record not older than `time`, of the first at all, or the one after the last, of partitions. */
  async offsets(
    topic: string,
    partitions: readonly number[],
    time: number | 'earliest' | 'latest',
  ): Promise<ReadonlyMap<number, number>> {
    const timestamp = time === 'earliest' ? EARLIEST : time === 'latest' ? LATEST : BigInt(Math.floor(time));
    const { leaders } = await this.topic(topic, true);
    const api =
      await this.#api<
        Call<[replica: number, isolation: number, topics: object[]], { topics: OffsetsOfTopic[] }>
      >('ListOffsets');
    const found = new Map<number, number>();
    for (const [leader, own] of Map.groupBy(partitions, (each) => leaders[each] ?? -1)) {
      const asked = own.map((partitionIndex) => ({ partitionIndex, currentLeaderEpoch: -1, timestamp }));
      const socket = await this.#socket(leader);
      const answer = await this.#soon(api.async(socket, -1, 0, [{ name: topic, partitions: asked }]));
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
      await this.#api<Call<Parameters<typeof fetchV17.createRequest>, fetchV17.FetchResponse>>('Fetch');
    const partitions = Array.from(from, ([partition, offset]) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: BigInt(offset),
      lastFetchedEpoch: -1,
      partitionMaxBytes: Math.min(bytes, PARTITION_BYTES),
    }));
    // Older brokers know topics by name.
    const topicId = api.version <= 12 ? topic.name : topic.id;
    const socket = await this.#socket(leader);
    const work = api.async(socket, wait, 1, bytes, 0, 0, -1, [{ topicId, partitions }], [], '');
    const answer = await this.#soon(work, wait).catch(
      (error: unknown) => this.#answerIn(error) as fetchV17.FetchResponse,
    );
    return (answer.responses[0]?.partitions ?? []).map((each) => this.#fetched(each, from));
  }

  async coordinator(group: string): Promise<number> {
    const api =
      await this.#api<Call<[type: number, keys: string[]], { coordinators: { nodeId: number }[] }>>(
        'FindCoordinator',
      );
    const metadata = await this.#soon(this.#base.metadata({ topics: [], forceUpdate: true }));
    const socket = await this.#soon(this.#base.connections.getFirstAvailable([...metadata.brokers.values()]));
    const { coordinators } = await this.#soon(api.async(socket, 0, [group]));
    return coordinators[0]?.nodeId ?? -1;
  }

  /** Waits until every member of the group has joined, or counts as gone. */
  async join(
    node: number,
    { group, id }: Pick<Member, 'group' | 'id'>,
    { session, rebalance, metadata }: { session: number; rebalance: number; metadata: Buffer },
    onNamed: (id: string) => void,
  ): Promise<Joined> {
    const api =
      await this.#api<Call<Parameters<typeof joinGroupV9.createRequest>, joinGroupV9.JoinGroupResponse>>(
        'JoinGroup',
      );
    const protocols = [{ name: PROTOCOL.name, metadata }];
    const ask = async (memberId: string): Promise<joinGroupV9.JoinGroupResponse> =>
      this.#soon(
        api.async(
          await this.#socket(node),
          group,
          session,
          rebalance,
          memberId,
          null,
          PROTOCOL.type,
          protocols,
        ),
        rebalance,
      );
    const answer = await ask(id).catch(async (error: unknown) => {
      // A newcomer is given an id first, so that it can be told from others.
      if (!this.isNamed(error, 'MEMBER_ID_REQUIRED')) throw error;
      const { memberId } = this.#answerIn(error) as joinGroupV9.JoinGroupResponse;
      onNamed(memberId);
      return ask(memberId);
    });
    const { memberId, generationId, members } = answer;
    return {
      group,
      id: memberId,
      generation: generationId,
      members: members.map((each) => ({ id: each.memberId, metadata: each.metadata })),
    };
  }

  /** @returns what the leader of the group has given this member */
  async sync(node: number, member: Member, shares: ReadonlyMap<string, Buffer>): Promise<Buffer> {
    const api =
      await this.#api<
        Call<
          [string, number, string, null, string, string, { memberId: string; assignment: Buffer }[]],
          { assignment: Buffer }
        >
      >('SyncGroup');
    const given = Array.from(shares, ([memberId, assignment]) => ({ memberId, assignment }));
    const { group, generation, id } = member;
    const socket = await this.#socket(node);
    const work = api.async(socket, group, generation, id, null, PROTOCOL.type, PROTOCOL.name, given);
    return (await this.#soon(work, this.#timeout)).assignment;
  }

  async heartbeat(node: number, { group, generation, id }: Member): Promise<void> {
    const api = await this.#api<Call<[string, number, string, null], unknown>>('Heartbeat');
    await this.#soon(api.async(await this.#socket(node), group, generation, id, null));
  }

  async leave(node: number, { group, id }: Member): Promise<void> {
    const api = await this.#api<Call<[string, { memberId: string }[]], unknown>>('LeaveGroup');
    await this.#soon(api.async(await this.#socket(node), group, [{ memberId: id }]));
  }

  /** Refused when the member is of an earlier generation. */
  async commit(
    node: number,
    { group, generation, id }: Member,
    topic: string,
    offsets: ReadonlyMap<number, Committed>,
  ): Promise<void> {
    const api = await this.#api<Call<[string, number, string, null, object[]], unknown>>('OffsetCommit');
    const partitions = Array.from(offsets, ([partitionIndex, { offset, text }]) => ({
      partitionIndex,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: text,
    }));
    const socket = await this.#socket(node);
    await this.#soon(api.async(socket, group, generation, id, null, [{ name: topic, partitions }]));
  }

  /** The offsets a group has committed; none for a partition of which it has committed none. */
  async committed(
    node: number,
    group: string,
    topic: string,
    partitions: readonly number[],
  ): Promise<ReadonlyMap<number, Committed>> {
    const api =
      await this.#api<
        Call<Parameters<typeof offsetFetchV9.createRequest>, offsetFetchV9.OffsetFetchResponse>
      >('OffsetFetch');
    const asked = [
      {
        groupId: group,
        memberId: null,
        memberEpoch: -1,
        topics: [{ name: topic, partitionIndexes: [...partitions] }],
      },
    ];
    const socket = await this.#socket(node);
    const { groups } = await this.#soon(api.async(socket, asked, true));
    const found = groups[0]?.topics[0]?.partitions ?? [];
    return new Map(
      found.flatMap(({ partitionIndex, committedOffset: offset, metadata }) =>
        offset < 0n ? [] : [[partitionIndex, { offset: Number(offset), text: metadata ?? '' }] as const],
      ),
    );
  }

  /** What the brokers have been told of a topic, by key. */
  async settings(topic: string): Promise<ReadonlyMap<string, string>> {
    const api =
      await this.#api<
        Call<Parameters<typeof describeConfigsV4.createRequest>, describeConfigsV4.DescribeConfigsResponse>
      >('DescribeConfigs');
    const { brokers } = await this.#soon(this.#base.metadata({ topics: [], forceUpdate: true }));
    const socket = await this.#soon(this.#base.connections.getFirstAvailable([...brokers.values()]));
    const asked = [{ resourceType: TOPIC, resourceName: topic, configurationKeys: null }];
    const { results } = await this.#soon(api.async(socket, asked, false, false));
    return new Map(results[0]?.configs.map(({ name, value }) => [name, value ?? '']));
  }

  /** Whether an error is this one of the protocol's. */
  isNamed(error: unknown, ...names: readonly string[]): boolean {
    return (
      error instanceof Error && names.some((name) => this.#kafka.findErrorBy(error, 'apiId', name) !== null)
    );
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
      if ((batch.attributes & this.#kafka.IS_CONTROL) !== 0) continue;
      for (const { key, value, headers, offsetDelta, timestampDelta } of batch.records) {
        const offset = first + offsetDelta;
        if (offset < begin) continue;
        records.push({ offset, key, value, headers, time: Number(batch.firstTimestamp + timestampDelta) });
      }
    }
    const error = this.#kafka.protocolErrorsCodesById[errorCode] ?? `error ${errorCode}`;
    return { partition, error, records, next, end: Number(highWatermark) };
  }

  /** An answer with an error in it is thrown, and is an answer all the same. */
  #answerIn(error: unknown): unknown {
    if (error instanceof this.#kafka.ResponseError && 'response' in error) return error.response;
    throw error;
  }

  async #socket(node: number): Promise<Socket> {
    const { brokers } = await this.#soon(this.#base.metadata({}));
    const broker = brokers.get(node);
    if (broker === undefined) throw new Error(`broker ${node} is not there`);
    return this.#soon(this.#base.connections.get(broker));
  }

  /** A broker that is there and says nothing must not be waited for without end. */
  #soon<T>(work: Promise<T>, beside = 0): Promise<T> {
    return within(work, this.#timeout + beside, NEVER, new Error('no answer in time'));
  }

  #api<T>(name: string): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#base[this.#kafka.kGetApi](name, (error, api) =>
        error === null || error === undefined ? resolve(api as T) : reject(error),
      );
    });
  }
}

const NEVER = new AbortController().signal;

interface OffsetsOfTopic {
  readonly partitions: readonly { readonly partitionIndex: number; readonly offset: bigint }[];
}
