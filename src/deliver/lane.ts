import { NumberSet } from '../lib/number-set.ts';
import type { Stretch } from '../lib/stretches.ts';

/**
 * What of one destination is settled. An event is open (its delivery is in memory) → settled, or → left (in the journal alone, to be
 * read again once there is room) → open. What a sink holds is none of these, until it has confirmed it; that is known elsewhere.
 */
export class Lane {
  /** Deliveries in memory, and of these: bytes of their bodies, and how many have been tried in vain. */
  readonly load = { count: 0, bytes: 0, inVain: 0 };
  readonly #open = new NumberSet();
  readonly #left = new NumberSet();
  /** Those that came after one that is not. */
  readonly #settled = new NumberSet();
  readonly #heldFrom: (seq: number) => number;

  /** @param heldFrom the first event from a seq on that the sink holds, or has to have again; Infinity for none */
  constructor(heldFrom: (seq: number) => number) {
    this.#heldFrom = heldFrom;
  }

  /** The first that is open or left; Infinity without any. */
  get least(): number {
    return Math.min(this.#open.least, this.#left.least);
  }

  /** How many are left. */
  get left(): number {
    return this.#left.size;
  }

  /** The first that is left; Infinity without any. */
  get leastLeft(): number {
    return this.#left.least;
  }

  /** @returns false when it is open already */
  add(seq: number): boolean {
    if (this.#open.has(seq)) return false;
    this.#left.delete(seq);
    this.#open.add(seq);
    return true;
  }

  leave(seq: number): void {
    this.#open.delete(seq);
    this.#left.add(seq);
  }

  /** It is the sink's now, and not settled. */
  hold(seq: number): void {
    this.#open.delete(seq);
  }

  settle(seq: number): void {
    this.#open.delete(seq);
    this.#left.delete(seq);
    const least = this.#from(0);
    if (seq > least) this.#settled.add(seq);
    else this.#settled.cut(least);
  }

  settleAll(seqs: NumberSet): void {
    const least = this.#from(0);
    if (least !== Number.POSITIVE_INFINITY) this.#settled.addAll(seqs);
    this.#settled.cut(least);
  }

  /**
   * What is settled of a span, in which something is not; null when all of it is settled. Events that are for other
   * destinations may be in a stretch, or not.
   */
  settledIn(
    after: number,
    upTo: number,
  ): { readonly floor: number; readonly stretches: Iterable<Stretch> } | null {
    const first = this.#from(after + 1);
    return first > upTo ? null : { floor: first - 1, stretches: this.#stretches(first, upTo) };
  }

  *#stretches(first: number, upTo: number): Generator<Stretch> {
    for (let at = first; ;) {
      const from = this.#settled.from(at);
      if (from > upTo) return;
      at = Math.min(this.#from(from), upTo + 1);
      yield { from, to: at };
    }
  }

  /** The first from a seq on that is not settled. */
  #from(seq: number): number {
    return Math.min(this.#open.from(seq), this.#left.from(seq), this.#heldFrom(seq));
  }
}
