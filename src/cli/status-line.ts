import { formatAbout } from '../lib/units.ts';
import { visible } from '../lib/visible.ts';
import { note, type Io } from './io.ts';

/** Milliseconds between two looks at the progress: on a terminal, where a line is written over, and elsewhere. */
const EVERY = { terminal: 200, log: 5000 } as const;
/** To the start of the line, which is cleared. */
const OVER = '\r\u001b[K';

/** Progress on stderr: on a terminal one line that is written over, elsewhere a line now and then. */
export class StatusLine {
  readonly #io: Io;
  readonly #overwrites: boolean;
  readonly #every: number;
  readonly #started = performance.now();
  #shown = this.#started;
  #open = false;
  #first: { readonly at: number; readonly done: number; readonly amount: number } | null = null;

  /** @param linesEvery milliseconds between two lines, none of which is written over, on a terminal too */
  constructor(io: Io, linesEvery?: number) {
    this.#io = io;
    this.#overwrites = linesEvery === undefined && io.stderr.isTTY === true;
    this.#every = linesEvery ?? (this.#overwrites ? EVERY.terminal : EVERY.log);
  }

  /** Since it was made; never 0, so that rates can be had of it. */
  get seconds(): number {
    return Math.max(performance.now() - this.#started, 1) / 1000;
  }

  /**
   * @param line asked for only when it is time to show one
   * @param stays it is shown at once, and not written over
   */
  show(line: () => string, stays = false): void {
    if (!stays && performance.now() - this.#shown < this.#every) return;
    this.#shown = performance.now();
    if (stays || !this.#overwrites) return this.note(line());
    this.#io.stderr.write(`${OVER}${visible(line())}`);
    this.#open = true;
  }

  /**
   * How fast it goes, and how long it still takes at the pace so far; the first call is the start of the count.
   * @param done of `total` parts; null for a total that nobody knows, of which only the pace is told
   * @param amount of what is counted in them; the parts themselves when left out
   */
  pace(done: number, total: number | null, amount = done): string {
    const now = performance.now();
    this.#first ??= { at: now, done, amount };
    const seconds = (now - this.#first.at) / 1000;
    const parts = (done - this.#first.done) / seconds;
    if (!(seconds > 0) || !(parts > 0)) return '';
    const rate = (amount - this.#first.amount) / seconds;
    const left =
      total === null || done >= total ? '' : `, ${formatAbout(((total - done) / parts) * 1000)} left`;
    return `, ${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s${left}`;
  }

  /** A line that stays. */
  note(line: string): void {
    this.clear();
    note(this.#io, line);
  }

  /** Takes away the line that would be written over: something else is shown next. */
  clear(): void {
    if (this.#open) this.#io.stderr.write(OVER);
    this.#open = false;
  }

  /** Notes so many lines of one kind, and then only that there are more. */
  atMost(most = 20): (line: string) => void {
    let noted = 0;
    return (line) => {
      noted += 1;
      if (noted <= most) this.note(line);
      if (noted === most + 1) this.note('and more of that kind, not named here');
    };
  }
}
