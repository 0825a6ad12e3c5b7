import type { Clock } from '../core/clock.ts';
import type { SinkLog } from '../core/sink.ts';
import { Tally } from '../lib/tally.ts';

/** Between two lines, milliseconds. */
const EVERY = 60_000;

/** What anyone who finds the port can cause, and what its own end says. */
const NOT_WORTH_A_LINE: ReadonlySet<string> = new Set(['not_found', 'method_not_allowed', 'shutting_down']);

/**
 * Says in the log that deliveries are refused, and why: the first at once, and then at most one line a minute with what has
 * gathered, however many there are. A wrong secret would leave no trace otherwise but at the sender.
 */
export class RefusalLog {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #log: Pick<SinkLog, 'warn'>;
  #gathered = new Tally();
  #detail = '';
  #cancel: (() => void) | null = null;

  constructor(clock: Pick<Clock, 'after'>, log: Pick<SinkLog, 'warn'>) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param detail in words, without anything of the body */
  add(code: string, detail: string): void {
    if (NOT_WORTH_A_LINE.has(code)) return;
    this.#gathered.add(code);
    this.#detail = detail;
    if (this.#cancel === null) this.#say();
  }

  stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#gathered.total > 0) this.#write();
    return Promise.resolve();
  }

  #say(): void {
    this.#write();
    this.#cancel = this.#clock.after(EVERY, () => {
      this.#cancel = null;
      if (this.#gathered.total > 0) this.#say();
    });
  }

  #write(): void {
    const { total: refused } = this.#gathered;
    const fields = { refused, codes: Object.fromEntries(this.#gathered), last: this.#detail };
    this.#gathered = new Tally();
    this.#log.warn(fields, 'deliveries refused');
  }
}
