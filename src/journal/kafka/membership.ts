import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { unlessAborted } from '../../lib/abort.ts';
import { isNamed } from '../../vendors/kafka/failure.ts';
import type { Cluster } from './cluster.ts';
import { newIdIn, REBALANCING, REJOIN, type Commit, type Group, type Joined } from './group.ts';
import { Lease } from './lease.ts';

export interface MembershipOptions {
  readonly group: string;
  readonly topic: string;
  /** Milliseconds after which the group continues without a silent member. */
  readonly session: number;
  readonly log: SinkLog;
}

/** Heartbeats in a session, and milliseconds between two tries to reach a coordinator. */
const [HEARTBEATS, PAUSE] = [8, 200];
/** Another broker coordinates the group now, or the coordinator is not ready yet. */
const MOVED = ['NOT_COORDINATOR', 'COORDINATOR_LOAD_IN_PROGRESS', 'COORDINATOR_NOT_AVAILABLE'];
const TOO_LARGE = 'OFFSET_METADATA_TOO_LARGE';
const now = (): number => performance.now();

/**
 * One member of a consumer group. It has no partitions while it joins: it has handed over what it had, because others get
 * it as soon as every member has joined again, or was silent for a session.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #cluster: Cluster;
  readonly #group: Group;
  #id = '';
  /** Partitions of the topic when this member last assigned them; null when another member did. */
  #assigned: number | null = null;
  #isLooking = false;

  constructor(cluster: Cluster, options: MembershipOptions) {
    this.#cluster = cluster;
    this.#group = cluster.group(options.group, options.topic);
    this.#options = options;
  }

  /** Joins, and is given partitions. @param owned those that it had last, and keeps where it can */
  async join(owned: readonly number[]): Promise<Lease> {
    const { topic, session } = this.#options;
    for (;;)
      try {
        const { member, members } = await this.#group.join(this.#id, session, owned);
        this.#id = member.id;
        const assigns = members.length > 0;
        this.#assigned = assigns ? (await this.#cluster.topic(topic, true)).leaders.length : null;
        const asked = now();
        const partitions = await this.#group.sync(member, session, assign(this.#assigned ?? 0, members));
        return new Lease(member, partitions, { asked, session, now });
      } catch (error) {
        const newId = newIdIn(error);
        if (newId === null && !isNamed(error, ...REJOIN, ...MOVED)) throw error;
        if (newId !== null || isNamed(error, 'UNKNOWN_MEMBER_ID')) this.#id = newId ?? '';
        if (newId === null) await wait(PAUSE);
      }
  }

  /**
   * Sends heartbeats until `signal` aborts. Ends the lease when the group rebalances, when this is no member any more, and
   * when the coordinator was out of reach for too long. Never rejects.
   */
  async keep(lease: Lease, signal: AbortSignal): Promise<void> {
    const { session, log, group } = this.#options;
    while (!signal.aborted) {
      const asked = now();
      let pause = session / HEARTBEATS;
      try {
        await this.#group.heartbeat(lease.member);
        lease.renew(asked);
        void this.#lookForPartitions(lease);
      } catch (error) {
        if (isNamed(error, ...REJOIN)) {
          if (lease.isHeld) log.info({ group, reason: messageOf(error) }, 'partitions are changing hands');
          if (!this.#endedBy(lease, error)) return;
        } else pause = PAUSE;
      }
      // Reads the clock, and so ends a lease that was not renewed.
      if (!lease.isHeld) lease.end();
      await wait(pause, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Brokers do not report new partitions: the member that assigned them ends its lease, and all join again. Never rejects. */
  async #lookForPartitions(lease: Lease): Promise<void> {
    if (this.#assigned === null || this.#isLooking || !lease.isHeld) return;
    const { topic, group, log } = this.#options;
    this.#isLooking = true;
    const found = await this.#cluster.topic(topic, true).catch(() => null);
    this.#isLooking = false;
    const partitions = found?.leaders.length ?? 0;
    if (partitions <= this.#assigned || !lease.isHeld) return;
    log.info({ group, topic, partitions }, 'the topic has more partitions: they are assigned again');
    lease.end();
  }

  /** @returns false when it was not committed: refused for a member of an earlier generation, or without an answer */
  async commit(lease: Lease, offsets: ReadonlyMap<number, Commit>): Promise<boolean> {
    try {
      await this.#group.commit(lease.member, offsets);
      return true;
    } catch (error) {
      const hasTexts = [...offsets.values()].some(({ text }) => text !== '');
      // Without the text the offset is accepted; else the sink would never get further.
      if (hasTexts && isNamed(error, TOO_LARGE)) return this.commit(lease, withoutTexts(offsets));
      if (isNamed(error, ...REJOIN)) this.#endedBy(lease, error);
      return false;
    }
  }

  /**
   * Leaves the group, so that others do not wait for the end of the session. Never rejects.
   * @param cluster with connections of its own: on those of a `join` the broker answers that first
   */
  async leave(cluster: Cluster, signal: AbortSignal): Promise<void> {
    if (this.#id === '') return;
    const { group, topic } = this.#options;
    const left = cluster.group(group, topic).leave(this.#id);
    this.#id = '';
    await unlessAborted(left, signal, undefined).catch(() => undefined);
  }

  /** @returns whether it is still a member, and may hand over */
  #endedBy(lease: Lease, error: unknown): boolean {
    const isMember = isNamed(error, REBALANCING);
    if (isMember) lease.end();
    else lease.lose();
    return isMember;
  }
}

function withoutTexts(offsets: ReadonlyMap<number, Commit>): ReadonlyMap<number, Commit> {
  return new Map(Array.from(offsets, ([partition, { offset }]) => [partition, { offset, text: '' }]));
}

/**
 * Assigns partitions as evenly as possible, and leaves each with the member that owned it: that one has its window of ids.
 * @returns partitions by member
 */
export function assign(
  partitions: number,
  members: Joined['members'],
): ReadonlyMap<string, readonly number[]> {
  const assigned = new Map(members.map(({ id }) => [id, [] as number[]]));
  const ids = [...assigned.keys()].toSorted();
  const free = new Set(Array.from({ length: partitions }, (_, index) => index));
  const most = Math.ceil(partitions / ids.length);
  // Members that may have `most`; the others have one less.
  let full = partitions - (most - 1) * ids.length;
  for (const { id, owned } of members.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const own = assigned.get(id) ?? [];
    for (const partition of owned) {
      const limit = full > 0 ? most : most - 1;
      if (own.length >= limit || !free.delete(partition)) continue;
      own.push(partition);
    }
    if (own.length === most) full -= 1;
  }
  for (const partition of free) {
    const [least] = ids.toSorted((a, b) => (assigned.get(a)?.length ?? 0) - (assigned.get(b)?.length ?? 0));
    assigned.get(least ?? '')?.push(partition);
  }
  return assigned;
}
