import type { findCoordinatorV6, joinGroupV9, offsetFetchV9 } from '@platformatic/kafka';
import { jsonIn } from '../../lib/parsed.ts';
import { answerIn, type Brokers, type Kafka } from '../../vendors/kafka/brokers.ts';
import { isNamed } from '../../vendors/kafka/failure.ts';
import { decodeAhead } from './commit-text.ts';
import type { CommittedCheckpoint } from './settled-offsets.ts';

/** A member of a consumer group in one generation of it. */
export interface Member {
  readonly id: string;
  readonly generation: number;
}

/** What is committed for a partition: the next offset, and the text beside it. */
export interface Commit {
  readonly offset: number;
  readonly text: string;
}

export interface Joined {
  readonly member: Member;
  /** All members and what each owned, if this one has to assign the partitions; else empty. */
  readonly members: readonly { readonly id: string; readonly owned: readonly number[] }[];
}

const [PROTOCOL_TYPE, PROTOCOL] = ['consumer', 'millrace'];
/** Errors that say that the member has to join again; it is still a member while the group rebalances. */
export const REBALANCING = 'REBALANCE_IN_PROGRESS';
export const REJOIN = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', REBALANCING] as const;

/** The requests of one consumer group of one topic, to the broker that coordinates it. */
export class Group {
  readonly #brokers: Brokers;
  readonly #name: string;
  readonly #topic: string;
  #coordinator: number | null = null;

  constructor(brokers: Brokers, name: string, topic: string) {
    this.#brokers = brokers;
    this.#name = name;
    this.#topic = topic;
  }

  /**
   * Waits until every member of the group has joined, or counts as gone.
   * @param id empty for a new member; it is then refused, and `newIdIn` the error is its id
   * @param session milliseconds after which a silent member counts as gone
   */
  async join(id: string, session: number, owned: readonly number[]): Promise<Joined> {
    const kafka = await this.#brokers.kafka();
    const subscription = { version: 0, topics: [this.#topic], userData: JSON.stringify(owned) };
    const metadata = kafka.encodeConsumerProtocolSubscription(subscription);
    const protocols = [{ name: PROTOCOL, metadata }];
    const args = [session, session, id, null, PROTOCOL_TYPE, protocols];
    const answer = await this.#ask<joinGroupV9.JoinGroupResponse>('JoinGroup', args, session);
    const members = answer.members.map((each) => {
      return { id: each.memberId, owned: ownedIn(kafka, each.metadata) };
    });
    return { member: { id: answer.memberId, generation: answer.generationId }, members };
  }

  /**
   * @param session milliseconds in which every member has to ask
   * @param shares partitions by member, from the member that assigns them; else empty
   * @returns the partitions of this member
   */
  async sync(
    { generation, id }: Member,
    session: number,
    shares: ReadonlyMap<string, readonly number[]>,
  ): Promise<readonly number[]> {
    const { encodeConsumerProtocolAssignment: encode, decodeConsumerProtocolAssignment: decode } =
      await this.#brokers.kafka();
    const given = Array.from(shares, ([memberId, partitions]) => {
      const assignedPartitions = [{ topic: this.#topic, partitions: [...partitions] }];
      return { memberId, assignment: encode({ version: 0, assignedPartitions }) };
    });
    const args = [generation, id, null, PROTOCOL_TYPE, PROTOCOL, given];
    const { assignment } = await this.#ask<{ readonly assignment: Buffer }>('SyncGroup', args, session);
    return decode(assignment).assignedPartitions.flatMap(({ partitions }) => partitions);
  }

  async heartbeat({ generation, id }: Member): Promise<void> {
    await this.#ask('Heartbeat', [generation, id, null]);
  }

  async leave(memberId: string): Promise<void> {
    await this.#ask('LeaveGroup', [[{ memberId }]]);
  }

  /** Refused when the member is of an earlier generation. */
  async commit({ generation, id }: Member, offsets: ReadonlyMap<number, Commit>): Promise<void> {
    const partitions = Array.from(offsets, ([partitionIndex, { offset, text }]) => ({
      partitionIndex,
      committedOffset: BigInt(offset),
      committedLeaderEpoch: -1,
      committedMetadata: text,
    }));
    await this.#ask('OffsetCommit', [generation, id, null, [{ name: this.#topic, partitions }]]);
  }

  /** The checkpoints of partitions; one without a committed offset is left out. */
  async checkpoints(partitions: readonly number[]): Promise<ReadonlyMap<number, CommittedCheckpoint>> {
    const topics = [{ name: this.#topic, partitionIndexes: [...partitions] }];
    const asked = [{ groupId: this.#name, memberId: null, memberEpoch: -1, topics }];
    const { groups } = await this.#coordinated((node) =>
      this.#brokers.ask<offsetFetchV9.OffsetFetchResponse>('OffsetFetch', node, [asked, true]),
    );
    const found = groups[0]?.topics[0]?.partitions ?? [];
    return new Map(
      found.flatMap(({ partitionIndex, committedOffset: offset, metadata }) =>
        offset < 0n ? [] : [[partitionIndex, decodeAhead(Number(offset), metadata ?? '')] as const],
      ),
    );
  }

  /** @param args after the name of the group */
  #ask<Result>(request: string, args: unknown[], beside = 0): Promise<Result> {
    return this.#coordinated((node) => this.#brokers.ask(request, node, [this.#name, ...args], beside));
  }

  /** Finds the coordinator again after an error that can mean that it is another broker. */
  async #coordinated<Result>(request: (node: number) => Promise<Result>): Promise<Result> {
    try {
      return await request((this.#coordinator ??= await this.#findCoordinator()));
    } catch (error) {
      if (!isNamed(error, ...REJOIN, 'MEMBER_ID_REQUIRED')) this.#coordinator = null;
      throw error;
    }
  }

  async #findCoordinator(): Promise<number> {
    type Answer = findCoordinatorV6.FindCoordinatorResponse;
    const { coordinators } = await this.#brokers.ask<Answer>('FindCoordinator', null, [0, [this.#name]]);
    return coordinators[0]?.nodeId ?? -1;
  }
}

/** The id that the coordinator gives a new member; null in another error. */
export function newIdIn(error: unknown): string | null {
  if (!isNamed(error, 'MEMBER_ID_REQUIRED')) return null;
  return (answerIn(error) as joinGroupV9.JoinGroupResponse).memberId;
}

/** The partitions that a member owned; none for a member of another program. */
function ownedIn({ decodeConsumerProtocolSubscription: decode }: Kafka, subscription: Buffer): number[] {
  try {
    const owned = jsonIn(String(decode(subscription).userData));
    return Array.isArray(owned) ? owned.filter((each) => Number.isSafeInteger(each)) : [];
  } catch {
    return [];
  }
}
