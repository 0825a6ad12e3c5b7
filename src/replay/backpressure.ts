import { setTimeout as wait } from 'node:timers/promises';
import type { CursorStatus } from '../core/journal.ts';
import { Bell } from '../lib/bell.ts';

export interface BackpressureOptions {
  /** How far each sink of the running receiver is; null when none runs. */
  readonly ask: () => Promise<readonly CursorStatus[] | null>;
  /** Sinks that the replay sends to. */
  readonly sinks: readonly string[];
  /** Live events that may wait for one of them. */
  readonly atMost: number;
  /** Told when it begins to hold back, and why; null when it no longer does. */
  readonly onChange: (reason: string | null) => void;
}

/** Milliseconds between two looks at the receiver. */
const LOOK_EVERY = 1000;

/** Lets live traffic go first: while a receiver has much waiting for a sink, a replay sends that sink nothing more. */
export class Backpressure {
  readonly #options: BackpressureOptions;
  #reason: string | null = null;
  readonly #bell = new Bell();

  constructor(options: BackpressureOptions) {
    this.#options = options;
  }

  /** Undefined when the replay may continue at once; else a promise for when it may. */
  turn(signal: AbortSignal): Promise<void> | undefined {
    return this.#reason === null ? undefined : this.#bell.until(() => this.#reason === null, signal);
  }

  /** Looks at the receiver again and again until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look();
      await wait(LOOK_EVERY, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { ask, sinks, atMost, onChange } = this.#options;
    // A receiver that does not answer is stopping or starting: there is nobody to make room for.
    const cursors = (await ask().catch(() => null)) ?? [];
    const behind = cursors.find(({ sink, backlog }) => sinks.includes(sink) && backlog > atMost);
    const reason = behind === undefined ? null : `${behind.backlog} live events wait for ${behind.sink}`;
    if ((reason === null) !== (this.#reason === null)) onChange(reason);
    this.#reason = reason;
    if (reason === null) this.#bell.ring();
  }
}
