import type { Member } from './groups.ts';

/** A stretch of offsets: from the first, up to before `to`. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** How far a group is in a partition. */
export interface Progress {
  /** Everything before it is done. */
  readonly offset: number;
  /** What is done behind it, ascending. */
  readonly done: readonly Stretch[];
}

/** What brokers take beside an offset: `offset.metadata.max.bytes` less a little. */
const MOST = 4000;
const BASE = 36;
/** Begins the text, so that nobody else's is taken for one. */
const MARK = 'done:';

/** As it is committed beside the offset: how much is not done, how much is, and so on. What has no room is done again. */
export function encodeDone({ offset, done }: Progress): string {
  let text = MARK;
  let at = offset;
  for (const { from, to } of done) {
    const next = `${text} ${(from - at).toString(BASE)} ${(to - from).toString(BASE)}`;
    if (next.length > MOST) break;
    text = next;
    at = to;
  }
  return text === MARK ? '' : text;
}

export function decodeDone(offset: number, text: string): Progress {
  const [mark, ...words] = text.split(' ');
  const lengths = mark === MARK ? words.map((each) => Number.parseInt(each, BASE)) : [];
  const done: Stretch[] = [];
  let at = offset;
  for (let index = 0; index + 1 < lengths.length; index += 2) {
    const from = at + (lengths[index] ?? 0);
    at = from + (lengths[index + 1] ?? 0);
    if (!Number.isSafeInteger(at)) return { offset, done: [] };
    done.push({ from, to: at });
  }
  return { offset, done };
}

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

  close(): void {
    this.end();
    this.#mode = 'closed';
  }
}
