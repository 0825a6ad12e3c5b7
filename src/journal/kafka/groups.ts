import type { joinGroupV9, offsetFetchV9 } from '@platformatic/kafka';
import type { Brokers } from '../../sinks/kafka/brokers.ts';

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
    const { coordinators } = await this.#brokers.ask<unknown[], Answer>('FindCoordinator', null, [
      0,
      [group],
    ]);
    return coordinators[0]?.nodeId ?? -1;
  }

  /** Waits until every member of the group has joined, or counts as gone. */
  async join(
    node: number,
    { group, id }: Pick<Member, 'group' | 'id'>,
    { session, rebalance, metadata }: { session: number; rebalance: number; metadata: Buffer },
    onNamed: (id: string) => void,
  ): Promise<Joined> {
    const protocols = [{ name: PROTOCOL.name, metadata }];
    const ask = (memberId: string): Promise<joinGroupV9.JoinGroupResponse> =>
      this.#brokers.ask<Parameters<typeof joinGroupV9.createRequest>, joinGroupV9.JoinGroupResponse>(
        'JoinGroup',
        node,
        [group, session, rebalance, memberId, null, PROTOCOL.type, protocols],
        rebalance,
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
      members: members.map((each) => ({ id: each.memberId, metadata: each.metadata })),
    };
  }

  /** @returns what the leader of the group has given this member */
  async sync(
    node: number,
    { group, generation, id }: Member,
    shares: ReadonlyMap<string, Buffer>,
  ): Promise<Buffer> {
    const given = Array.from(shares, ([memberId, assignment]) => ({ memberId, assignment }));
    const { assignment } = await this.#brokers.ask<unknown[], { readonly assignment: Buffer }>(
      'SyncGroup',
      node,
      [group, generation, id, null, PROTOCOL.type, PROTOCOL.name, given],
      this.#timeout,
    );
    return assignment;
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
    const { groups } = await this.#brokers.ask<
      Parameters<typeof offsetFetchV9.createRequest>,
      offsetFetchV9.OffsetFetchResponse
    >('OffsetFetch', node ?? (await this.coordinator(group)), [
      [{ groupId: group, memberId: null, memberEpoch: -1, topics }],
      true,
    ]);
    const found = groups[0]?.topics[0]?.partitions ?? [];
    return new Map(
      found.flatMap(({ partitionIndex, committedOffset: offset, metadata }) =>
        offset < 0n ? [] : [[partitionIndex, { offset: Number(offset), text: metadata ?? '' }] as const],
      ),
    );
  }
}
