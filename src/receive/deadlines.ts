import type { Clock } from '../core/clock.ts';
import { Chain, type Linked } from '../lib/chain.ts';

/** An item of one `Deadlines` at a time, which alone writes this. */
export interface Due extends Linked {
  /** Monotonic milliseconds. */
  due: number;
}

/**
 * Deadlines of items that all have the same time, with one timer, for the first. A timer for each request would take longer
 * than everything else that is done for its deadline, which almost no request reaches.
 */
export class Deadlines<T extends Due> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #ms: number;
  readonly #onDue: (item: T) => void;
  readonly #items = new Chain<T>();
  /** The item of the timer; null when it was removed since. */
  #awaited: T | null = null;
  #cancel: (() => void) | null = null;

  /** @param ms between `from` of `add` and the call of `onDue` */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, ms: number, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#onDue = onDue;
  }

  /** @param from monotonic milliseconds, not before those of the present items */
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
