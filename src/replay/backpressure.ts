import { setTimeout as wait } from 'node:timers/promises';
import type { CursorStatus } from '../core/journal.ts';
import { Bell } from '../lib/bell.ts';

export interface BackpressureOptions {
  /** The cursors of the running receiver; null when none runs. */
  readonly ask: () => Promise<readonly CursorStatus[] | null>;
  /** Sinks that the replay sends to. */
  readonly sinks: readonly string[];
  /** Most live events that wait for one of them before the replay pauses. */
  readonly atMost: number;
  /** Called with the reason when the replay pauses, and with null when it continues. */
  readonly onChange: (reason: string | null) => void;
}

const LOOK_EVERY_MS = 1000;

/** Pauses a replay while many live events wait for one of its sinks. */
export class Backpressure {
  readonly #options: BackpressureOptions;
  #reason: string | null = null;
  readonly #bell = new Bell();

  constructor(options: BackpressureOptions) {
    this.#options = options;
  }

  /** Undefined when the replay may continue at once; else resolves when it may. */
  turn(signal: AbortSignal): Promise<void> | undefined {
    return this.#reason === null ? undefined : this.#bell.until(() => this.#reason === null, signal);
  }

  /** Watches the receiver until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look();
      await wait(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { ask, sinks, atMost, onChange } = this.#options;
    // A receiver that does not answer is starting or stopping: no pause.
    const cursors = (await ask().catch(() => null)) ?? [];
    const behind = cursors.find(({ sink, backlog }) => sinks.includes(sink) && backlog > atMost);
    const reason = behind === undefined ? null : `${behind.backlog} live events wait for ${behind.sink}`;
    if ((reason === null) !== (this.#reason === null)) onChange(reason);
    this.#reason = reason;
    if (reason === null) this.#bell.ring();
  }
}
