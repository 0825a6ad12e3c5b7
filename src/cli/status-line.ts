import { aboutDuration } from '../lib/units.ts';
import { visible } from '../lib/visible.ts';
import { note, type Io } from './io.ts';

/** Milliseconds between two updates. */
const EVERY_MS = { terminal: 200, log: 5000 } as const;
/** Moves to the start of the line and clears it. */
const CLEAR = '\r\u001b[K';

/** Progress on stderr: on a terminal one line that is overwritten, elsewhere a new line every five seconds. */
export class StatusLine {
  readonly #io: Io;
  readonly #overwrites: boolean;
  readonly #every: number;
  #shown = performance.now();
  #open = false;
  #first: { readonly at: number; readonly done: number; readonly amount: number } | null = null;

  /** @param linesEvery milliseconds between two lines; with it no line is overwritten */
  constructor(io: Io, linesEvery?: number) {
    this.#io = io;
    this.#overwrites = linesEvery === undefined && io.stderr.isTTY === true;
    this.#every = linesEvery ?? (this.#overwrites ? EVERY_MS.terminal : EVERY_MS.log);
  }

  /**
   * @param line called only when it is time for an update
   * @param stays shows the line at once, and does not overwrite it
   */
  show(line: () => string, stays = false): void {
    if (!stays && performance.now() - this.#shown < this.#every) return;
    this.#shown = performance.now();
    if (stays || !this.#overwrites) return this.note(line());
    this.#io.stderr.write(`${CLEAR}${visible(line())}`);
    this.#open = true;
  }

  /**
   * The rate, and the time left at this rate, such as `, 120/s, 3m left`; empty at the first call, where counting begins.
   * @param total null when unknown
   * @param amount what the rate counts, when that is not `done`
   */
  pace(done: number, total: number | null, amount = done): string {
    const now = performance.now();
    this.#first ??= { at: now, done, amount };
    const seconds = (now - this.#first.at) / 1000;
    const parts = (done - this.#first.done) / seconds;
    if (!(seconds > 0) || !(parts > 0)) return '';
    const rate = (amount - this.#first.amount) / seconds;
    const left =
      total === null || done >= total ? '' : `, ${aboutDuration(((total - done) / parts) * 1000)} left`;
    return `, ${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s${left}`;
  }

  /** A line that stays. */
  note(line: string): void {
    this.clear();
    note(this.#io, line);
  }

  /** Removes the line that would be overwritten. */
  clear(): void {
    if (this.#open) this.#io.stderr.write(CLEAR);
    this.#open = false;
  }

  /** Returns a function that notes the first lines of a kind, and then once that there are more. */
  atMost(most = 20): (line: string) => void {
    let noted = 0;
    return (line) => {
      noted += 1;
      if (noted <= most) this.note(line);
      if (noted === most + 1) this.note('and more of that kind, not named here');
    };
  }
}
