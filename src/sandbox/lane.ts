import type { Throttle } from './providers.ts';
import type { Timers } from './timers.ts';

/** How long one trigger holds its place where only so many may be at it at a time; sandbox time. */
const TRIGGER_MS = 500;

/** Runs tasks in order, no faster than a throttle allows. */
export class Lane {
  readonly #throttle: Throttle;
  readonly #timers: Timers;
  #tasks: (() => void)[] = [];
  #next = 0;
  /** A turn is due, so that no task has to ask for one. */
  #scheduled = false;
  /** Sandbox time before which no turn may be. */
  #notBefore: number;
  readonly #onTurn: (notBefore: number) => void;

  /**
   * @param notBefore where an earlier run left off: sandbox time of the next turn
   * @param onTurn told the time of the next turn after each
   */
  constructor(throttle: Throttle, timers: Timers, notBefore: number, onTurn: (notBefore: number) => void) {
    this.#throttle = throttle;
    this.#timers = timers;
    this.#notBefore = notBefore;
    this.#onTurn = onTurn;
  }

  push(task: () => void): void {
    this.#tasks.push(task);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Not at once: a window is filled with all that was pushed together.
    this.#timers.at(this.#notBefore, () => this.#turn());
  }

  /** One window, or one handful: then the next after its time. */
  #turn(): void {
    const batch = this.#tasks.slice(this.#next, this.#next + this.#throttle.connections);
    this.#next += batch.length;
    for (const task of batch) task();
    if (this.#next === this.#tasks.length) {
      this.#tasks = [];
      this.#next = 0;
    }
    const ms = this.#throttle.kind === 'window' ? this.#throttle.everyMs : TRIGGER_MS;
    this.#notBefore = this.#timers.clock.now() + ms;
    this.#onTurn(this.#notBefore);
    this.#timers.after(ms, () => {
      if (this.#tasks.length > 0) this.#turn();
      else this.#scheduled = false;
    });
  }
}
