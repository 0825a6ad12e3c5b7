import type { Member } from './group.ts';

/** Share of the session after which a lease without an answered heartbeat ends: before others may have the partitions. */
const SHARE = 0.75;

/**
 * The partitions that a member has in one generation of its group, for as long as no other member can have them.
 *
 * Modes: held (heartbeats are answered) → ended (others have the partitions, or will have them soon: nothing new is sent)
 * → closed (nothing more is committed).
 */
export class Lease {
  readonly member: Member;
  readonly partitions: readonly number[];
  readonly #duration: number;
  readonly #now: () => number;
  #until: number;
  #mode: 'held' | 'ended' | 'closed' = 'held';
  readonly #over = new AbortController();
  /** Aborts when `end` is called. */
  readonly over: AbortSignal = this.#over.signal;

  /** @param asked monotonic time of the request that was answered with the partitions */
  constructor(
    member: Member,
    partitions: readonly number[],
    { asked, session, now }: { asked: number; session: number; now: () => number },
  ) {
    this.member = member;
    this.partitions = partitions;
    this.#now = now;
    this.#duration = session * SHARE;
    this.#until = asked + this.#duration;
  }

  /** Reads the clock: a process that was paused finds here that its lease has ended. */
  get isHeld(): boolean {
    if (this.#mode === 'held' && this.#now() >= this.#until) this.end();
    return this.#mode === 'held';
  }

  /** True while no other member can have the partitions: results of what was in flight may still be written. */
  get isOwn(): boolean {
    return this.#mode !== 'closed' && this.#now() < this.#until;
  }

  get isClosed(): boolean {
    return this.#mode === 'closed';
  }

  /** The coordinator has answered a heartbeat that was sent at `asked`. */
  renew(asked: number): void {
    if (this.isHeld) this.#until = Math.max(this.#until, asked + this.#duration);
  }

  end(): void {
    if (this.#mode === 'held') this.#mode = 'ended';
    this.#over.abort();
  }

  /** Others may have the partitions. */
  lose(): void {
    this.#until = Number.NEGATIVE_INFINITY;
    this.end();
  }

  close(): void {
    this.end();
    this.#mode = 'closed';
  }
}
