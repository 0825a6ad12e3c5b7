import { NumberSet } from '../lib/number-set.ts';
import type { Stretch } from '../lib/stretches.ts';

/**
 * What of one destination is settled: an event is open → settled. What a sink holds is neither, until it has confirmed it;
 * that is known elsewhere.
 */
export class Lane {
  readonly #open = new NumberSet();
  /** Those that came after one that is not. */
  readonly #settled = new NumberSet();
  readonly #heldFrom: (seq: number) => number;

  /** @param heldFrom the first event from a seq on that the sink holds, or has to have again; Infinity for none */
  constructor(heldFrom: (seq: number) => number) {
    this.#heldFrom = heldFrom;
  }

  /** The first that is open; Infinity without any. */
  get least(): number {
    return this.#open.least;
  }

  /** @returns false when it is open already */
  add(seq: number): boolean {
    if (this.#open.has(seq)) return false;
    this.#open.add(seq);
    return true;
  }

  /** It is the sink's now, and not settled. */
  hold(seq: number): void {
    this.#open.delete(seq);
  }

  settle(seq: number): void {
    this.#open.delete(seq);
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
    return Math.min(this.#open.from(seq), this.#heldFrom(seq));
  }
}
