import type { joinGroupV9, offsetFetchV9 } from '@platformatic/kafka';
import type { Brokers, Call } from '../../sinks/kafka/brokers.ts';

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
    const api =
      await this.#brokers.api<Call<[type: number, keys: string[]], { coordinators: { nodeId: number }[] }>>(
        'FindCoordinator',
      );
    const socket = await this.#brokers.any();
    const { coordinators } = await this.#brokers.soon(api.async(socket, 0, [group]));
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
      await this.#brokers.api<
        Call<Parameters<typeof joinGroupV9.createRequest>, joinGroupV9.JoinGroupResponse>
      >('JoinGroup');
    const protocols = [{ name: PROTOCOL.name, metadata }];
    const ask = async (memberId: string): Promise<joinGroupV9.JoinGroupResponse> =>
      this.#brokers.soon(
        api.async(
          await this.#brokers.node(node),
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
  async sync(node: number, member: Member, shares: ReadonlyMap<string, Buffer>): Promise<Buffer> {
    const api =
      await this.#brokers.api<
        Call<
          [string, number, string, null, string, string, { memberId: string; assignment: Buffer }[]],
          { assignment: Buffer }
        >
      >('SyncGroup');
    const given = Array.from(shares, ([memberId, assignment]) => ({ memberId, assignment }));
    const { group, generation, id } = member;
    const socket = await this.#brokers.node(node);
    const work = api.async(socket, group, generation, id, null, PROTOCOL.type, PROTOCOL.name, given);
    return (await this.#brokers.soon(work, this.#timeout)).assignment;
  }

  async heartbeat(node: number, { group, generation, id }: Member): Promise<void> {
    const api = await this.#brokers.api<Call<[string, number, string, null], unknown>>('Heartbeat');
    await this.#brokers.soon(api.async(await this.#brokers.node(node), group, generation, id, null));
  }

  async leave(node: number, { group, id }: Member): Promise<void> {
    const api = await this.#brokers.api<Call<[string, { memberId: string }[]], unknown>>('LeaveGroup');
    await this.#brokers.soon(api.async(await this.#brokers.node(node), group, [{ memberId: id }]));
  }

  /** Refused when the member is of an earlier generation. */
  async commit(
    node: number,
    { group, generation, id }: Member,
    topic: string,
    offsets: ReadonlyMap<number, Committed>,
  ): Promise<void> {
    const api =
      await this.#brokers.api<Call<[string, number, string, null, object[]], unknown>>('OffsetCommit');
    const partitions = Array.from(offsets, ([partitionIndex, { offset, text }]) => ({
      partitionIndex,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: text,
    }));
    const socket = await this.#brokers.node(node);
    await this.#brokers.soon(api.async(socket, group, generation, id, null, [{ name: topic, partitions }]));
  }

  /** The offsets a group has committed; none for a partition of which it has committed none. */
  async committed(
    node: number,
    group: string,
    topic: string,
    partitions: readonly number[],
  ): Promise<ReadonlyMap<number, Committed>> {
    const api =
      await this.#brokers.api<
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
    const socket = await this.#brokers.node(node);
    const { groups } = await this.#brokers.soon(api.async(socket, asked, true));
    const found = groups[0]?.topics[0]?.partitions ?? [];
    return new Map(
      found.flatMap(({ partitionIndex, committedOffset: offset, metadata }) =>
        offset < 0n ? [] : [[partitionIndex, { offset: Number(offset), text: metadata ?? '' }] as const],
      ),
    );
  }
}
