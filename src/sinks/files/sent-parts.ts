import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { NOT_REMOVED, removePart } from './finish.ts';
import type { Part } from './part.ts';

/** Milliseconds in which the journal notes on disk how far the sink is. */
const NOTED = 30_000;

/**
 * Parts whose records are in their place. After a crash everything from the oldest event on that was held then is sent again, so
 * each of them stays on the disk, to know its events again, until all that were held beside it are in their place as well.
 */
export class SentParts {
  readonly #clock: Clock;
  readonly #log: SinkLog;
  /** By path, with the parts that each waits for. */
  readonly #waiting = new Map<string, Set<Part>>();
  /** Those that wait for nothing but the journal, with what cancels their removal. */
  readonly #leaving = new Map<string, () => void>();
  /** Parts that were lost a moment ago, with what cancels their end. */
  readonly #lost = new Map<Part, () => void>();
  #stopped = false;

  constructor(clock: Clock, log: SinkLog) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param beside parts that are held now */
  add(path: string, beside: Set<Part>): void {
    if (beside.size === 0) this.#leave(path);
    else this.#waiting.set(path, beside);
  }

  /** The part is held no longer. @param instead what its records are in now, and are not in their place */
  confirmed(part: Part, instead: Iterable<Part> = []): void {
    const held = [...instead];
    for (const [path, beside] of this.#waiting) {
      if (!beside.delete(part)) continue;
      for (const each of held) beside.add(each);
      if (beside.size > 0) continue;
      this.#waiting.delete(path);
      this.#leave(path);
    }
  }

  /** The part is gone, and its records come again, soon: `held` is asked for what they are in then. */
  lost(part: Part, held: () => Iterable<Part>): void {
    if (this.#stopped) return;
    const cancel = this.#clock.after(NOTED, () => {
      this.#lost.delete(part);
      this.confirmed(part, held());
    });
    this.#lost.set(part, cancel);
  }

  /** What is left is for the next start. */
  stop(): void {
    this.#stopped = true;
    for (const cancel of [...this.#leaving.values(), ...this.#lost.values()]) cancel();
  }

  #leave(path: string): void {
    if (this.#stopped) return;
    const cancel = this.#clock.after(NOTED, () => {
      this.#leaving.delete(path);
      removePart({ path }).catch((error: unknown) => {
        this.#log.warn({ path, error: messageOf(error) }, NOT_REMOVED);
        this.#leave(path);
      });
    });
    this.#leaving.set(path, cancel);
  }
}
