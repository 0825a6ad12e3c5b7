import type { Clock } from '../../core/clock.ts';
import type { ServiceClient } from '../service/client.ts';

/** Progress of the service's pulls. */
export type WatchProgress =
  | {
      readonly phase: 'trigger';
      readonly provider: string;
      readonly pending: number;
      readonly processed: number;
    }
  | {
      readonly phase: 'follow';
      readonly total: number;
      readonly finished: number;
      readonly failed: number;
      readonly retrying: number;
    };

/** How the pulls of the service are followed. */
export interface WatchOptions {
  readonly service: ServiceClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Milliseconds between two looks. */
  readonly pollMs: number;
  /** Milliseconds without progress after which a wait ends; 0 waits for ever. */
  readonly patienceMs: number;
  readonly onProgress: (progress: WatchProgress) => void;
}

/** Ends a wait when nothing has changed for too long. */
export class Patience {
  readonly #clock: Clock;
  readonly #ms: number;
  #last: number | null = null;
  #since: number;

  /** @param ms milliseconds; 0 waits for ever */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#since = clock.monotonic();
  }

  /** Called at each look; true once the progress has been the same for too long. */
  isOver(progress: number): boolean {
    const now = this.#clock.monotonic();
    if (progress !== this.#last) this.#since = now;
    this.#last = progress;
    return this.#ms > 0 && now - this.#since >= this.#ms;
  }
}
