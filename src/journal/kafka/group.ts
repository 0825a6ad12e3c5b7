import type { joinGroupV9, offsetFetchV9 } from '@platformatic/kafka';
import { jsonIn } from '../../lib/parsed.ts';
import type { Brokers } from '../../vendors/kafka/brokers.ts';

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
  /** Of all members, where this one has to say who gets what, and what each had; else empty. */
  readonly members: readonly { readonly id: string; readonly owned: readonly number[] }[];
}

const PROTOCOL = { type: 'consumer', name: 'millrace' } as const;

/** The requests of a consumer group's members, to the broker that coordinates it. */
export class Groups {
  readonly #brokers: Brokers;
  readonly #timeout: number;

  constructor(brokers: Brokers, timeout: number) {
    this.#brokers = brokers;
    this.#timeout = timeout;
  }

  /** Whether an error is this one of the protocol's. */
  isNamed(error: unknown, ...names: readonly string[]): boolean {
    return this.#brokers.isNamed(error, ...names);
  }

  async coordinator(group: string): Promise<number> {
    type Answer = { readonly coordinators: readonly { readonly nodeId: number }[] };
    const { coordinators } = await this.#brokers.ask<Answer>('FindCoordinator', null, [0, [group]]);
    return coordinators[0]?.nodeId ?? -1;
  }

  /** Waits until every member of the group has joined, or counts as gone. */
  async join(
    node: number,
    { group, id }: Pick<Member, 'group' | 'id'>,
    {
      session,
      topic,
      owned,
    }: { readonly session: number; readonly topic: string; readonly owned: readonly number[] },
    onNamed: (id: string) => void,
  ): Promise<Joined> {
    const protocols = [{ name: PROTOCOL.name, metadata: this.#subscription(topic, owned) }];
    const ask = (memberId: string): Promise<joinGroupV9.JoinGroupResponse> =>
      this.#brokers.ask<joinGroupV9.JoinGroupResponse>(
        'JoinGroup',
        node,
        [group, session, session, memberId, null, PROTOCOL.type, protocols] satisfies Parameters<
          typeof joinGroupV9.createRequest
        >,
        session,
      );
    const answer = await ask(id).catch(async (error: unknown) => {
      // A newcomer is given an id first, so that it can be told from others.
      if (!this.#brokers.isNamed(error, 'MEMBER_ID_REQUIRED')) throw error;
      const { memberId } = this.#brokers.answerIn(error) as joinGroupV9.JoinGroupResponse;
      onNamed(memberId);
      return ask(memberId);
    });
    const { memberId, generationId, members } = answer;
    return {
      group,
      id: memberId,
      generation: generationId,
      members: members.map((each) => ({ id: each.memberId, owned: this.#ownedOf(each.metadata) })),
    };
  }

  /** @returns what the leader of the group has given this member */
  async sync(
    node: number,
    { group, generation, id }: Member,
    topic: string,
    shares: ReadonlyMap<string, readonly number[]>,
  ): Promise<readonly number[]> {
    const given = Array.from(shares, ([memberId, partitions]) => {
      return { memberId, assignment: this.#assignment(topic, partitions) };
    });
    const { assignment } = await this.#brokers.ask<{ readonly assignment: Buffer }>(
      'SyncGroup',
      node,
      [group, generation, id, null, PROTOCOL.type, PROTOCOL.name, given],
      this.#timeout,
    );
    return this.#assigned(assignment);
  }

  async heartbeat(node: number, { group, generation, id }: Member): Promise<void> {
    await this.#brokers.ask('Heartbeat', node, [group, generation, id, null]);
  }

  async leave(node: number, { group, id }: Member): Promise<void> {
    await this.#brokers.ask('LeaveGroup', node, [group, [{ memberId: id }]]);
  }

  /** Refused when the member is of an earlier generation. */
  async commit(
    node: number,
    { group, generation, id }: Member,
    topic: string,
    offsets: ReadonlyMap<number, Committed>,
  ): Promise<void> {
    const partitions = Array.from(offsets, ([partitionIndex, { offset, text }]) => ({
      partitionIndex,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: text,
    }));
    const topics = [{ name: topic, partitions }];
    await this.#brokers.ask('OffsetCommit', node, [group, generation, id, null, topics]);
  }

  /** The offsets a group has committed; none for a partition of which it has committed none. */
  async committed(
    group: string,
    topic: string,
    partitions: readonly number[],
    node?: number,
  ): Promise<ReadonlyMap<number, Committed>> {
    const topics = [{ name: topic, partitionIndexes: [...partitions] }];
    const asked = [{ groupId: group, memberId: null, memberEpoch: -1, topics }];
    const { groups } = await this.#brokers.ask<offsetFetchV9.OffsetFetchResponse>(
      'OffsetFetch',
      node ?? (await this.coordinator(group)),
      [asked, true] satisfies Parameters<typeof offsetFetchV9.createRequest>,
    );
    const found = groups[0]?.topics[0]?.partitions ?? [];
    return new Map(
      found.flatMap(({ partitionIndex, committedOffset: offset, metadata }) =>
        offset < 0n ? [] : [[partitionIndex, { offset: Number(offset), text: metadata ?? '' }] as const],
      ),
    );
  }

  // The encodings of a consumer group, version 0: https://kafka.apache.org/protocol, ConsumerProtocolSubscription and -Assignment.

  /** What a member says of itself when it joins: which topic it reads, and what it had of it. */
  #subscription(topic: string, owned: readonly number[]): Buffer {
    return this.#brokers.kafka.Writer.create()
      .appendInt16(0)
      .appendArray([topic], (writer, name) => void writer.appendString(name, false), false, false)
      .appendBytes(Buffer.from(JSON.stringify(owned)), false).buffer;
  }

  /** What a member had; nothing for one of another program. */
  #ownedOf(subscription: Buffer): readonly number[] {
    try {
      const reader = this.#brokers.kafka.Reader.from(subscription).skip(2);
      reader.readArray((topics) => topics.readString(false), false, false);
      const owned = jsonIn(String(reader.readBytes(false)));
      return Array.isArray(owned) ? owned.filter((each) => Number.isSafeInteger(each)) : [];
    } catch {
      return [];
    }
  }

  #assignment(topic: string, partitions: readonly number[]): Buffer {
    const one = this.#brokers.kafka.Writer.create()
      .appendString(topic, false)
      .appendArray([...partitions], (writer, partition) => void writer.appendInt32(partition), false, false);
    return this.#brokers.kafka.Writer.create()
      .appendInt16(0)
      .appendArray([one], (writer, each) => void writer.appendFrom(each), false, false)
      .appendBytes(Buffer.alloc(0), false).buffer;
  }

  #assigned(assignment: Buffer): readonly number[] {
    if (assignment.length === 0) return [];
    const reader = this.#brokers.kafka.Reader.from(assignment).skip(2);
    const topics = reader.readArray(
      (topic) => {
        topic.readString(false);
        return topic.readArray((partitions) => partitions.readInt32(), false, false);
      },
      false,
      false,
    );
    return topics.flat();
  }
}
