import type { Member } from './group.ts';

/** How long silence may last before what is claimed counts as lost, as a share of the session: before others may have it. */
const SHARE = 0.75;

/**
 * The partitions a member has in one generation of its group, for as long as nobody else can have them.
 *
 * Modes: held (heartbeats are answered) → ended (others may have them soon, or have them: nothing new is sent) → closed
 * (nothing more is committed either).
 */
export class Claim {
  readonly member: Member;
  readonly partitions: readonly number[];
  readonly #lease: number;
  readonly #now: () => number;
  #until: number;
  #mode: 'held' | 'ended' | 'closed' = 'held';
  readonly #over = new AbortController();

  /** @param asked monotonic time at which the answer that gave them was asked for */
  constructor(
    member: Member,
    partitions: readonly number[],
    { asked, session, now }: { asked: number; session: number; now: () => number },
  ) {
    this.member = member;
    this.partitions = partitions;
    this.#now = now;
    this.#lease = session * SHARE;
    this.#until = asked + this.#lease;
  }

  /** A process that was paused finds here that it is too late, before it has heard so from anybody. */
  get isHeld(): boolean {
    if (this.#mode === 'held' && this.#now() >= this.#until) this.end();
    return this.#mode === 'held';
  }

  /** Whether nobody else can have them yet: so long what was in flight may still be noted. */
  get isOwn(): boolean {
    return this.#mode !== 'closed' && this.#now() < this.#until;
  }

  get isClosed(): boolean {
    return this.#mode === 'closed';
  }

  /** Aborts when it is not held any more, and somebody has noticed. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** The coordinator has answered a heartbeat that was sent at `asked`. */
  renew(asked: number): void {
    if (this.isHeld) this.#until = Math.max(this.#until, asked + this.#lease);
  }

  end(): void {
    if (this.#mode === 'held') this.#mode = 'ended';
    this.#over.abort();
  }

  /** Others may have them. */
  lose(): void {
    this.#until = Number.NEGATIVE_INFINITY;
    this.end();
  }

  close(): void {
    this.end();
    this.#mode = 'closed';
  }
}
