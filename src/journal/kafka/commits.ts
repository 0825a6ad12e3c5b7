import { setTimeout as wait } from 'node:timers/promises';
import { Bell } from '../../lib/bell.ts';
import { encodeAhead } from './commit-text.ts';
import type { Commit } from './group.ts';
import type { Lease } from './lease.ts';
import type { Membership } from './membership.ts';
import type { SettledOffsets } from './settled-offsets.ts';

/** Milliseconds until the next commit; after one that failed. */
const [PAUSE, LONG_PAUSE] = [10, 200];
/** Confirmed deliveries that may wait for a commit: so many are sent again when the brokers cannot be reached. */
const MOST_UNCOMMITTED = 200;

/** Commits what is settled in the partitions of a lease, as soon as something is. */
export class Commits {
  readonly #lease: Lease;
  readonly #membership: Membership;
  readonly #settled: ReadonlyMap<number, SettledOffsets>;
  /** The last commit, by partition. */
  readonly #committed = new Map<number, Commit>();
  #running: Promise<void> | null = null;
  #isDirty = false;
  /** Deliveries confirmed since the beginning of the last commit that succeeded. */
  #uncommitted = 0;
  readonly #bell = new Bell();

  constructor(lease: Lease, membership: Membership, settled: ReadonlyMap<number, SettledOffsets>) {
    this.#lease = lease;
    this.#membership = membership;
    this.#settled = settled;
  }

  /** A delivery is confirmed. */
  confirmed(): void {
    this.#uncommitted += 1;
    this.soon();
  }

  /** Resolves when few confirmed deliveries wait for a commit, or the lease has ended. */
  async untilCommitted(): Promise<void> {
    const areFew = (): boolean => this.#uncommitted < MOST_UNCOMMITTED;
    await this.#bell.until(areFew, this.#lease.over).catch(() => undefined);
  }

  soon(): void {
    this.#isDirty = true;
    this.#running ??= this.#run();
  }

  /** Resolves when what is settled now is committed, or cannot be. */
  async flush(): Promise<void> {
    this.soon();
    await this.#running;
  }

  /** The last commit of the lease. */
  async finish(): Promise<void> {
    await this.#running;
    await this.#commit();
  }

  async #run(): Promise<void> {
    while (this.#isDirty && this.#lease.isHeld) {
      this.#isDirty = false;
      const isDone = await this.#commit();
      if (!isDone) this.#isDirty = true;
      await wait(isDone ? PAUSE : LONG_PAUSE);
    }
    this.#running = null;
  }

  /** @returns whether all that was settled at its beginning is committed */
  async #commit(): Promise<boolean> {
    const confirmed = this.#uncommitted;
    const offsets = new Map<number, Commit>();
    for (const [partition, { checkpoint }] of this.#settled) {
      if (checkpoint === null) continue;
      const { offset } = checkpoint;
      const text = encodeAhead(checkpoint);
      const last = this.#committed.get(partition);
      if (last?.offset !== offset || last.text !== text) offsets.set(partition, { offset, text });
    }
    if (offsets.size > 0 && !(await this.#membership.commit(this.#lease, offsets))) return false;
    // `finish` can run beside `#run`.
    this.#uncommitted -= Math.min(confirmed, this.#uncommitted);
    this.#bell.ring();
    for (const [partition, commit] of offsets) this.#committed.set(partition, commit);
    return true;
  }
}
