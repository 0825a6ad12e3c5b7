import type { Clock } from '../core/clock.ts';

/** What can have a deadline. It is in one list of deadlines at a time, which alone writes these. */
export interface Due {
  /** Monotonic milliseconds. */
  due: number;
  /** The neighbours in its list. */
  sooner: this | null;
  later: this | null;
}

/**
 * Deadlines of things that all have the same time, with one timer: for the first that is due. A timer of its own for each
 * request would cost more than all else that is done for its deadline, and almost none ever comes to it. A list through
 * the things themselves: a Map leaves each of its old tables to the garbage collector with all that was in it.
 */
export class Deadlines<T extends Due> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #ms: number;
  readonly #onDue: (item: T) => void;
  #first: T | null = null;
  #last: T | null = null;
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
    item.sooner = this.#last;
    if (this.#last === null) this.#first = item;
    else this.#last.later = item;
    this.#last = item;
    if (this.#cancel === null) this.#arm();
  }

  remove(item: T): void {
    if (item.sooner === null && this.#first !== item) return;
    if (item.sooner === null) this.#first = item.later;
    else item.sooner.later = item.later;
    if (item.later === null) this.#last = item.sooner;
    else item.later.sooner = item.sooner;
    // One that is gone must not keep those after it in memory.
    item.sooner = null;
    item.later = null;
    if (item === this.#awaited) this.#awaited = null;
    if (this.#first === null) this.#disarm();
  }

  #arm(): void {
    if (this.#first === null) return;
    this.#awaited = this.#first;
    const left = Math.max(0, this.#first.due - this.#clock.monotonic());
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
    for (let item = this.#first; item !== null && (item === awaited || item.due <= now); item = this.#first) {
      this.remove(item);
      this.#onDue(item);
    }
    if (this.#cancel === null) this.#arm();
  }
}
