import { visible } from '../lib/visible.ts';
import { note, type Io } from './io.ts';

/** Milliseconds between two looks at the progress: on a terminal, where a line is written over, and elsewhere. */
const EVERY = { terminal: 200, log: 5000 } as const;
/** To the start of the line, which is cleared. */
const OVER = '\r\u001b[K';

/** Progress on stderr: on a terminal one line that is written over, elsewhere a line now and then. */
export class StatusLine {
  readonly #io: Io;
  readonly #terminal: boolean;
  #shown = performance.now();
  #open = false;

  constructor(io: Io) {
    this.#io = io;
    this.#terminal = io.stderr.isTTY === true;
  }

  /** @param line asked for only when it is time to show one */
  show(line: () => string): void {
    if (performance.now() - this.#shown < (this.#terminal ? EVERY.terminal : EVERY.log)) return;
    this.#shown = performance.now();
    if (this.#terminal) this.#io.stderr.write(`${OVER}${visible(line())}`);
    else note(this.#io, line());
    this.#open = this.#terminal;
  }

  /** A line that stays. */
  note(line: string): void {
    if (this.#open) this.#io.stderr.write(OVER);
    this.#open = false;
    note(this.#io, line);
  }
}
