/** Fewer events than this are not divided. */
const SMALL = 8;
/** Slow commits in a row before the mode changes: now and then a disk is slow for one. */
const IN_A_ROW = 8;
/** Most milliseconds that an event waits for others. */
const MOST_PATIENCE = 20;

/**
 * How many events a commit takes, and when the next one begins. Senders that send their next event when the last is answered would
 * put all of their events into one commit: this thread would be idle while it runs, and the disk while this thread answers. So a
 * commit takes half of the events in progress, which is faster as long as it takes less time than this thread needs for all of them.
 *
 * Modes: halves ⇄ whole (commits take longer than that, so that all events share one).
 */
export class CommitPace {
  #mode: 'halves' | 'whole' = 'halves';
  /** Events in progress when the last commit ended: in it, or waiting. */
  #all = 0;
  /** Of the last commit: milliseconds, as all times here. */
  #began = 0;
  #ended = 0;
  #took = 0;
  /** When the last event arrived, and how many have since the commit began. */
  #lastArrival = 0;
  #arrivals = 0;
  /** Slow commits in a row. */
  #slow = 0;

  /** Most events of the next commit. */
  get most(): number {
    return this.#mode === 'whole' ? Number.POSITIVE_INFINITY : Math.max(SMALL, Math.ceil(this.#all / 2));
  }

  /** With so many events the next commit begins at once. */
  get enough(): number {
    return this.#mode === 'whole' ? this.#all : this.most;
  }

  /** With fewer it begins after so many milliseconds; 0: at the end of the turn. */
  get patience(): number {
    return this.#mode === 'whole' ? Math.min(this.#took / 2, MOST_PATIENCE) : 0;
  }

  arrived(now: number, isRunning: boolean): void {
    this.#lastArrival = now;
    this.#arrivals += 1;
    if (!isRunning && now - this.#ended > this.#took) this.#mode = 'halves';
  }

  began(now: number): void {
    this.#began = now;
    this.#arrivals = 0;
  }

  /** @param count events of the commit @param waiting events that are not in it */
  ended(now: number, count: number, waiting: number): void {
    this.#ended = now;
    this.#took = now - this.#began;
    this.#all = count + waiting;
    if (this.#all < 2 * SMALL) {
      this.#mode = 'halves';
      return;
    }
    // A few late events, of senders that had something else to do, say nothing about the others.
    if (this.#arrivals < SMALL / 2) return;
    // What this thread would need for all events, judged by those that arrived during the commit.
    const forAll = ((this.#lastArrival - this.#began) * this.#all) / this.#arrivals;
    this.#slow = this.#took > forAll ? this.#slow + 1 : 0;
    this.#mode = this.#slow >= IN_A_ROW ? 'whole' : 'halves';
  }
}
