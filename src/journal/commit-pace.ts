/** Fewer events than this are not divided. */
const SMALL = 8;
/** So many commits in a row have to be slow before they are whole: now and then a disk is slow for one. */
const IN_A_ROW = 8;
/** Milliseconds that an event waits at most for others. */
const MOST_PATIENCE = 20;

/**
 * How many events a commit takes, and when the next one begins. Many who send, each the next event when the last is answered, would
 * have all of their events in one commit, with nothing to do for this thread meanwhile, and then all of them here, with nothing to
 * write. So each commit takes half of those that are on their way, which is faster as long as a commit takes less than this thread
 * needs for all of them.
 *
 * Modes: halves ⇄ whole (a commit takes longer than that, so all of them share one).
 */
export class CommitPace {
  #mode: 'halves' | 'whole' = 'halves';
  /** Events that were on their way when the last commit ended: in it, or waiting. */
  #all = 0;
  #began = 0;
  #ended = 0;
  #took = 0;
  /** When the last event came, and how many have come since the commit began. */
  #arrived = 0;
  #came = 0;
  /** Slow commits in a row. */
  #slow = 0;

  /** Events that the next commit takes at most. */
  get most(): number {
    return this.#mode === 'whole' ? Number.POSITIVE_INFINITY : Math.max(SMALL, Math.ceil(this.#all / 2));
  }

  /** With so many the next commit begins at once. */
  get enough(): number {
    return this.#mode === 'whole' ? this.#all : this.most;
  }

  /** With fewer than that it begins after so many milliseconds, or with the end of the turn where that is 0. */
  get patience(): number {
    return this.#mode === 'whole' ? Math.min(this.#took / 2, MOST_PATIENCE) : 0;
  }

  /** An event has come. @param now milliseconds, as of all below */
  arrived(now: number, running: boolean): void {
    this.#arrived = now;
    this.#came += 1;
    if (!running && now - this.#ended > this.#took) this.#mode = 'halves';
  }

  began(now: number): void {
    this.#began = now;
    this.#came = 0;
  }

  /** @param waiting events that are not in it */
  ended(now: number, count: number, waiting: number): void {
    this.#ended = now;
    this.#took = now - this.#began;
    this.#all = count + waiting;
    if (this.#all < 2 * SMALL) {
      this.#mode = 'halves';
      return;
    }
    // A few that come late, from senders who have something else to do, tell nothing.
    if (this.#came < SMALL / 2) return;
    // For those that came meanwhile this thread has had so long; for all it would have longer.
    const forAll = ((this.#arrived - this.#began) * this.#all) / this.#came;
    this.#slow = this.#took > forAll ? this.#slow + 1 : 0;
    this.#mode = this.#slow >= IN_A_ROW ? 'whole' : 'halves';
  }
}
