import type { Clock } from '../core/clock.ts';

/**
 * Deadlines of things that all have the same time, with one timer: for the first that is due. A timer of its own for each
 * request would cost more than all else that is done for its deadline, and almost none ever comes to it.
 */
export class Deadlines<T> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #ms: number;
  readonly #onDue: (item: T) => void;
  /** When each is due, monotonic milliseconds; the first first. */
  readonly #items = new Map<T, number>();
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
    this.#items.set(item, from + this.#ms);
    if (this.#cancel === null) this.#arm();
  }

  remove(item: T): void {
    if (!this.#items.delete(item)) return;
    if (item === this.#awaited) this.#awaited = null;
    if (this.#items.size === 0) this.#disarm();
  }

  #arm(): void {
    const [first] = this.#items;
    if (first === undefined) return;
    const [item, due] = first;
    this.#awaited = item;
    const left = Math.max(0, due - this.#clock.monotonic());
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
    for (const [item, due] of this.#items) {
      if (item !== awaited && due > now) break;
      this.remove(item);
      this.#onDue(item);
    }
    if (this.#cancel === null) this.#arm();
  }
}
