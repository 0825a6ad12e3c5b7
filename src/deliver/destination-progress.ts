import { getOrMake } from '../lib/get-or-make.ts';
import { NumberSet } from '../lib/number-set.ts';
import type { Stretch } from '../lib/stretches.ts';

/**
 * How far one destination is. An event is open (its delivery is in memory) → settled, → held (the sink has it, and confirms
 * it later) or → deferred (in the journal only, to be loaded again). Held → settled; or, when the sink has lost it, → deferred.
 */
export class DestinationProgress {
  /** Deliveries in memory, bytes of their bodies, and how many of them wait for a retry. */
  readonly load = { count: 0, bytes: 0, retried: 0 };
  readonly #open = new NumberSet();
  readonly deferred = new NumberSet();
  /** By the promise that says when they are confirmed, the same one for many. */
  readonly #held = new Map<Promise<void>, NumberSet>();
  /** Events settled after one that is not. */
  readonly #settled = new NumberSet();

  /** The first event that is not settled; Infinity without any. */
  get first(): number {
    return this.#from(0);
  }

  /** The first event that the sink does not have; Infinity without any. */
  get firstToSend(): number {
    return Math.min(this.#open.least, this.deferred.least);
  }

  /** @returns false when it is open already */
  open(seq: number): boolean {
    if (this.#open.has(seq)) return false;
    this.deferred.delete(seq);
    this.#open.add(seq);
    return true;
  }

  defer(seq: number): void {
    this.#open.delete(seq);
    this.deferred.add(seq);
  }

  hold(seq: number, until: Promise<void>): void {
    this.#open.delete(seq);
    getOrMake(this.#held, until, newSet).add(seq);
  }

  settle(seq: number): void {
    this.#open.delete(seq);
    this.deferred.delete(seq);
    const first = this.#from(0);
    if (seq > first) this.#settled.add(seq);
    else this.#settled.cut(first);
  }

  /** @returns the events that were held until this promise */
  settleHeld(until: Promise<void>): NumberSet {
    const seqs = this.#takeHeld(until);
    const first = this.#from(0);
    if (first !== Infinity) this.#settled.addAll(seqs);
    this.#settled.cut(first);
    return seqs;
  }

  /** @returns how many events were held until this promise */
  deferHeld(until: Promise<void>): number {
    const seqs = this.#takeHeld(until);
    this.deferred.addAll(seqs);
    return seqs.size;
  }

  /**
   * What is settled of a span in which something is not; null when all of it is settled. A stretch may hold events that are
   * for other destinations.
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

  /** The first event from a seq on that is not settled. */
  #from(seq: number): number {
    let first = Math.min(this.#open.from(seq), this.deferred.from(seq));
    for (const held of this.#held.values()) first = Math.min(first, held.from(seq));
    return first;
  }

  #takeHeld(until: Promise<void>): NumberSet {
    const seqs = this.#held.get(until) ?? new NumberSet();
    this.#held.delete(until);
    return seqs;
  }
}

const newSet = (): NumberSet => new NumberSet();
