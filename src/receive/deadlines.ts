import type { Clock } from '../core/clock.ts';
import { Chain, type Linked } from '../lib/chain.ts';

/** What can have a deadline, in one `Deadlines` at a time, which alone writes this. */
export interface Due extends Linked {
  /** Monotonic milliseconds. */
  due: number;
}

/**
 * Deadlines of things that all have the same time, with one timer: for the first that is due. A timer of its own for each
 * request would cost more than all else that is done for its deadline, and almost none ever comes to it.
 */
export class Deadlines<T extends Due> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #ms: number;
  readonly #onDue: (item: T) => void;
  readonly #items = new Chain<T>();
  /** What the timer is for; null when that was removed since. */
  #awaited: T | null = null;
  #cancel: (() => void) | null = null;

  /** @param ms between `from` of `add` and the call of `onDue` */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, ms: number, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#onDue = onDue;
  }

  /** @param from monotonic milliseconds, not before that of those which are there */
  add(item: T, from: number): void {
    item.due = from + this.#ms;
    this.#items.add(item);
    if (this.#cancel === null) this.#arm();
  }

  remove(item: T): void {
    if (!this.#items.remove(item)) return;
    if (item === this.#awaited) this.#awaited = null;
    if (this.#items.first === null) this.#disarm();
  }

  #arm(): void {
    const { first } = this.#items;
    if (first === null) return;
    this.#awaited = first;
    const left = Math.max(0, first.due - this.#clock.monotonic());
    this.#cancel = this.#clock.after(left, () => this.#elapse());
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #elapse(): void {
    const awaited = this.#awaited;
    this.#disarm();
    const now = this.#clock.monotonic();
    const next = (): T | null => this.#items.first;
    for (let item = next(); item !== null && (item === awaited || item.due <= now); item = next()) {
      this.remove(item);
      this.#onDue(item);
    }
    if (this.#cancel === null) this.#arm();
  }
}
