import type { Clock } from '../../core/clock.ts';
import { Tally } from '../../lib/tally.ts';

const MINUTE = 60_000;
const MINUTES = 60;
const HOUR = MINUTES * MINUTE;

/** Refused requests of the last hour by code. */
export class Refusals {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #began: { readonly at: number; readonly monotonic: number };
  /** When the last one was, in milliseconds since the epoch; null without any since the start. */
  last: number | null = null;
  /** Oldest first, without empty minutes. */
  #minutes: { readonly minute: number; readonly codes: Tally }[] = [];

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>) {
    this.#clock = clock;
    this.#began = { at: clock.now(), monotonic: clock.monotonic() };
  }

  add(code: string): void {
    const minute = this.#now();
    this.last = this.#clock.now();
    let last = this.#minutes.at(-1);
    if (last?.minute !== minute) {
      this.#forget(minute);
      this.#minutes.push((last = { minute, codes: new Tally() }));
    }
    last.codes.add(code);
  }

  /** The most frequent first. */
  lastHour(): Record<string, number> {
    this.#forget(this.#now());
    const sums = new Map<string, number>();
    for (const { codes } of this.#minutes)
      for (const [code, count] of codes) sums.set(code, (sums.get(code) ?? 0) + count);
    return Object.fromEntries([...sums].toSorted(([, one], [, other]) => other - one));
  }

  /** Start of counting, in milliseconds since the epoch, when it is less than an hour ago; else null. */
  since(): number | null {
    return this.#clock.monotonic() - this.#began.monotonic < HOUR ? this.#began.at : null;
  }

  #now(): number {
    return Math.floor(this.#clock.monotonic() / MINUTE);
  }

  #forget(now: number): void {
    this.#minutes = this.#minutes.filter(({ minute }) => minute > now - MINUTES);
  }
}
