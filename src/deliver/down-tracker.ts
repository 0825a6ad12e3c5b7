import type { Clock } from '../core/clock.ts';
import type { SendResult } from '../core/sink.ts';

/** Shares of successful tries: below the first a sink goes down, above the second it comes up again. */
const [FEW, ENOUGH] = [1 / 5, 1 / 2];
/** `after` is divided into so many parts; the oldest is forgotten as a whole. */
const PARTS = 12;

interface DownTrackerOptions {
  readonly clock: Clock;
  /** Milliseconds of failures after which a sink is down, and of successes after which it is up. */
  readonly after: number;
  /** Milliseconds that one call may take: a sink that has answered nothing yet has at least so long. */
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
  /** Tries by the part they ended in, oldest first. */
  readonly #recent: { readonly part: number; tries: number; succeeded: number }[] = [];
  /** Since when events wait without a break, and when the sink last answered: monotonic milliseconds. */
  #waitingSince: number | null = null;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** While down: the time with successes, and the tries in it. */
  #better: { readonly since: number; until: number; tries: number; succeeded: number } | null = null;

  constructor(options: DownTrackerOptions) {
    this.#options = options;
  }

  /** Counts the results of one batch, without events that could not be tried. */
  answered(results: readonly SendResult[]): void {
    let [tries, succeeded] = [0, 0];
    for (const result of results) {
      if (result.status !== 'retry') succeeded += 1;
      if (result.status !== 'retry' || result.untried !== true) tries += 1;
    }
    this.add(tries, succeeded);
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
    if (succeeded > 0) this.#noteBetter(now);
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
    if (!isWaiting) this.#noteBetter(now);
    if (this.#better === null) return true;
    const { since, until, tries, succeeded } = this.#better;
    const isOver = isFailing || (tries > 0 && succeeded <= tries * ENOUGH);
    if (!isOver && until - since < after) return true;
    this.#better = null;
    if (!isOver) onChange((this.#isDown = false));
    return this.#isDown;
  }

  /** While down: whether it has begun to succeed again. */
  get isBetter(): boolean {
    return this.#better !== null;
  }

  #noteBetter(now: number): void {
    this.#better ??= { since: now, until: now, tries: 0, succeeded: 0 };
    this.#better.until = now;
  }

  #isFailing(now: number): boolean {
    const { after, callTime } = this.#options;
    const oldest = Math.floor(((now - after) * PARTS) / after);
    while ((this.#recent[0]?.part ?? oldest) < oldest) this.#recent.shift();
    if (this.#waitingSince === null || now - this.#waitingSince < after) return false;
    let [tries, succeeded] = [0, 0];
    for (const sums of this.#recent) [tries, succeeded] = [tries + sums.tries, succeeded + sums.succeeded];
    if (succeeded > 0) return succeeded < tries * FEW;
    if (tries > 0) return true;
    return now - Math.max(this.#waitingSince, this.#answeredAt) >= Math.max(after, callTime);
  }
}
