import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { unlessAborted } from '../../lib/abort.ts';
import { Claim } from './lease.ts';
import type { Cluster } from './cluster.ts';
import type { Committed, Joined } from './group.ts';

export interface MembershipOptions {
  readonly group: string;
  readonly topic: string;
  /** Milliseconds of silence after which the group does without a member. */
  readonly session: number;
  readonly now: () => number;
  readonly log: SinkLog;
}

/** Heartbeats in a session, and milliseconds between two tries to reach a coordinator. */
const [HEARTBEATS, PAUSE] = [8, 200];
/** The coordinator is another one now, or is not ready yet. */
const MOVED = ['NOT_COORDINATOR', 'COORDINATOR_LOAD_IN_PROGRESS', 'COORDINATOR_NOT_AVAILABLE'];
/** Somebody else is the member, or nobody. */
const LOST = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', 'REBALANCE_IN_PROGRESS'];
const TOO_LARGE = 'OFFSET_METADATA_TOO_LARGE';

/**
 * One member of a consumer group. It has nothing while it joins: whatever it had it has handed over before, because the
 * others get it only once every member has joined anew, or has been silent for a session.
 */
export class Membership {
  readonly #options: MembershipOptions;
  readonly #cluster: Cluster;
  #node: number | null = null;
  #id = '';
  /** Of the topic, as this member has shared them out; null when another one has. */
  #shared: number | null = null;
  #isLooking = false;

  constructor(cluster: Cluster, options: MembershipOptions) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /** Joins, and is given partitions. @param owned those that it had last, and would like to have again */
  async join(owned: readonly number[]): Promise<Claim> {
    const { group, topic, session, now } = this.#options;
    for (;;) {
      const node = await this.#coordinator();
      const asked = now();
      try {
        const joining = { session, topic, owned };
        const named = (id: string): void => void (this.#id = id);
        const { members, ...member } = await this.#cluster.groups.join(
          node,
          { group, id: this.#id },
          joining,
          named,
        );
        this.#id = member.id;
        const partitions = members.length === 0 ? 0 : (await this.#cluster.topic(topic, true)).leaders.length;
        const shares = members.length === 0 ? NOBODY : shareOut(partitions, members);
        this.#shared = members.length === 0 ? null : partitions;
        const synced = now();
        const own = await this.#cluster.groups.sync(node, member, topic, shares);
        return new Claim(member, own, { asked: Math.max(asked, synced), session, now });
      } catch (error) {
        if (this.#cluster.groups.isNamed(error, 'UNKNOWN_MEMBER_ID')) this.#id = '';
        else if (!this.#cluster.groups.isNamed(error, ...LOST, ...MOVED)) throw error;
        this.#node = null;
        await wait(PAUSE);
      }
    }
  }

  /**
   * Says again and again that it is there, until `signal` aborts; ends the claim when it is to hand over, or when it has lost
   * what it had. Never rejects.
   */
  async keep(claim: Claim, signal: AbortSignal): Promise<void> {
    const { session, now, log, group } = this.#options;
    while (!signal.aborted) {
      const asked = now();
      try {
        await this.#cluster.groups.heartbeat(await this.#coordinator(), claim.member);
        claim.renew(asked);
        void this.#look(claim);
      } catch (error) {
        if (this.#cluster.groups.isNamed(error, ...LOST)) {
          if (claim.isHeld) log.info({ group, reason: messageOf(error) }, 'partitions are changing hands');
          if (!this.#endedBy(claim, error)) return;
        } else this.#node = null;
      }
      // Looks at the clock: silence ends it as well.
      if (!claim.isHeld) claim.end();
      const pause = this.#node === null ? PAUSE : session / HEARTBEATS;
      await wait(pause, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Brokers tell nobody that there are more partitions: whoever shared them out joins anew, and so all others do. Never rejects. */
  async #look(claim: Claim): Promise<void> {
    if (this.#shared === null || this.#isLooking || !claim.isHeld) return;
    const { topic, group, log } = this.#options;
    this.#isLooking = true;
    const found = await this.#cluster.topic(topic, true).catch(() => null);
    this.#isLooking = false;
    const partitions = found?.leaders.length ?? 0;
    if (partitions <= this.#shared || !claim.isHeld) return;
    log.info({ group, topic, partitions }, 'the topic has more partitions: they are shared out anew');
    claim.end();
  }

  /** What the group has committed of partitions. */
  async committed(partitions: readonly number[]): Promise<ReadonlyMap<number, Committed>> {
    const { group, topic } = this.#options;
    return this.#cluster.groups.committed(group, topic, partitions, await this.#coordinator());
  }

  /** @returns whether the group has taken it: a member of an earlier generation is refused */
  async commit(claim: Claim, offsets: ReadonlyMap<number, Committed>): Promise<boolean> {
    try {
      await this.#cluster.groups.commit(
        await this.#coordinator(),
        claim.member,
        this.#options.topic,
        offsets,
      );
      return true;
    } catch (error) {
      const texts = [...offsets.values()].some(({ text }) => text !== '');
      // A broker that takes less beside an offset has the offset, or the sink would stand still for good.
      if (texts && this.#cluster.groups.isNamed(error, TOO_LARGE)) return this.commit(claim, bare(offsets));
      if (this.#cluster.groups.isNamed(error, ...LOST)) this.#endedBy(claim, error);
      else this.#node = null;
      return false;
    }
  }

  /**
   * So that others need not wait until it counts as gone. Never rejects.
   * @param cluster whose connections do not wait for the answer to a `join`
   */
  async leave(cluster: Cluster, signal: AbortSignal): Promise<void> {
    if (this.#id === '') return;
    const member = { group: this.#options.group, id: this.#id, generation: -1 };
    this.#id = '';
    const left = cluster.groups.coordinator(member.group).then((node) => cluster.groups.leave(node, member));
    await unlessAborted(
      left.catch(() => undefined),
      signal,
      undefined,
    );
  }

  /** @returns whether it is still a member, and may hand over */
  #endedBy(claim: Claim, error: unknown): boolean {
    const isMember = this.#cluster.groups.isNamed(error, 'REBALANCE_IN_PROGRESS');
    if (isMember) claim.end();
    else claim.lose();
    return isMember;
  }

  async #coordinator(): Promise<number> {
    return (this.#node ??= await this.#cluster.groups.coordinator(this.#options.group));
  }
}

function bare(offsets: ReadonlyMap<number, Committed>): ReadonlyMap<number, Committed> {
  return new Map(Array.from(offsets, ([partition, { offset }]) => [partition, { offset, text: '' }]));
}

const NOBODY: ReadonlyMap<string, readonly number[]> = new Map();

/** Shares out partitions, as evenly as can be, and leaves each with whom it was: its window of ids is there. */
export function shareOut(
  partitions: number,
  members: Joined['members'],
): ReadonlyMap<string, readonly number[]> {
  const shares = new Map(members.map(({ id }) => [id, [] as number[]]));
  const ids = [...shares.keys()].toSorted();
  const free = new Set(Array.from({ length: partitions }, (_, index) => index));
  const most = Math.ceil(partitions / ids.length);
  // So many may have one more than the others.
  let full = partitions - (most - 1) * ids.length;
  for (const { id, owned } of members.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const share = shares.get(id) ?? [];
    for (const partition of owned) {
      const limit = full > 0 ? most : most - 1;
      if (share.length >= limit || !free.delete(partition)) continue;
      share.push(partition);
    }
    if (share.length === most) full -= 1;
  }
  for (const partition of free) {
    const [least] = ids.toSorted((a, b) => (shares.get(a)?.length ?? 0) - (shares.get(b)?.length ?? 0));
    shares.get(least ?? '')?.push(partition);
  }
  return shares;
}
