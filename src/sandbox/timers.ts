import type { Clock } from '../core/clock.ts';

/** The timers of a sandbox, which are cancelled when it stops. */
export class Timers {
  readonly clock: Clock;
  readonly #cancels = new Set<() => void>();
  #stopped = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  after(ms: number, callback: () => void): void {
    if (this.#stopped) return;
    const cancel = this.clock.after(Math.max(0, ms), () => {
      this.#cancels.delete(cancel);
      if (!this.#stopped) callback();
    });
    this.#cancels.add(cancel);
  }

  /** ISO 8601 with an offset, the service's form of times. */
  stamp(ms: number = this.clock.now()): string {
    return new Date(ms).toISOString().replace('Z', '+00:00');
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
  }
}
