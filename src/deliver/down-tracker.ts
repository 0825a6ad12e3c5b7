import type { Clock } from '../core/clock.ts';
import type { Outcome } from './send-batch.ts';

/** Below the first share of successful tries a sink goes down, above the second one it comes up again. */
const [FEW, ENOUGH] = [1 / 5, 1 / 2];
/** Parts of the time that is looked at; the oldest is forgotten as a whole. */
const PARTS = 12;

export interface DownTrackerOptions {
  readonly clock: Clock;
  /** Milliseconds looked at, in both directions. */
  readonly after: number;
  /** Milliseconds that one call may take: a sink that has answered nothing yet is given so long. */
  readonly callTime: number;
  readonly onChange: (isDown: boolean) => void;
}

/**
 * Says whether a sink is down. Status, metrics, readiness and console all read it from here.
 *
 * Modes: up → down (events have waited for `after`, and within it nothing was delivered or fewer than one try in five
 * succeeded) → up (for `after`, more than one try in two succeeded, or nothing was left to try).
 * `look` is the only place that changes the mode. No timer: it is asked at each change and with each status.
 */
export class DownTracker {
  readonly #options: DownTrackerOptions;
  #isDown = false;
  /** Tries by the part of the time they ended in, oldest first. */
  #recent: { readonly part: number; tries: number; succeeded: number }[] = [];
  /** Since when events wait without a break, and when the sink last answered: monotonic milliseconds. */
  #waitingSince: number | null = null;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** While down: from when until when it did better, and the tries in between. */
  #better: { readonly since: number; until: number; tries: number; succeeded: number } | null = null;

  constructor(options: DownTrackerOptions) {
    this.#options = options;
  }

  /** One batch has been answered; what could not even be tried says nothing. */
  answered(outcomes: readonly Outcome[]): void {
    const tried = outcomes.filter(({ result }) => result.status !== 'retry' || result.untried !== true);
    this.add(tried.length, tried.filter(({ result }) => result.status !== 'retry').length);
  }

  /** @param succeeded negative for what had succeeded and is lost */
  add(tries: number, succeeded: number): void {
    if (tries === 0 && succeeded === 0) return;
    const now = this.#options.clock.monotonic();
    this.#answeredAt = now;
    const part = Math.floor((now * PARTS) / this.#options.after);
    let sums = this.#recent.at(-1);
    if (sums?.part !== part) this.#recent.push((sums = { part, tries: 0, succeeded: 0 }));
    sums.tries += tries;
    sums.succeeded += succeeded;
    if (!this.#isDown) return;
    if (succeeded > 0) this.#isBetter(now);
    if (this.#better === null) return;
    this.#better.tries += tries;
    this.#better.succeeded += succeeded;
  }

  /** @param isWaiting whether events wait that the sink could be sent @returns whether it is down */
  look(isWaiting: boolean): boolean {
    const { clock, after, onChange } = this.#options;
    const now = clock.monotonic();
    if (isWaiting) this.#waitingSince ??= now;
    else this.#waitingSince = null;
    const isFailing = this.#isFailing(now);
    if (!this.#isDown) {
      if (isFailing) onChange((this.#isDown = true));
      return this.#isDown;
    }
    if (!isWaiting) this.#isBetter(now);
    if (this.#better === null) return true;
    const { since, until, tries, succeeded } = this.#better;
    const isOver = isFailing || (tries > 0 && succeeded <= tries * ENOUGH);
    if (!isOver && until - since < after) return true;
    this.#better = null;
    if (!isOver) onChange((this.#isDown = false));
    return this.#isDown;
  }

  #isBetter(now: number): void {
    this.#better ??= { since: now, until: now, tries: 0, succeeded: 0 };
    this.#better.until = now;
  }

  #isFailing(now: number): boolean {
    const { after, callTime } = this.#options;
    const oldest = Math.floor(((now - after) * PARTS) / after);
    this.#recent = this.#recent.filter(({ part }) => part >= oldest);
    if (this.#waitingSince === null || now - this.#waitingSince < after) return false;
    let [tries, succeeded] = [0, 0];
    for (const sums of this.#recent) [tries, succeeded] = [tries + sums.tries, succeeded + sums.succeeded];
    if (succeeded > 0) return succeeded < tries * FEW;
    if (tries > 0) return true;
    return now - Math.max(this.#waitingSince, this.#answeredAt) >= Math.max(after, callTime);
  }
}
