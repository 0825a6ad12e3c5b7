import type { Clock } from '../../core/clock.ts';
import type { ServiceClient } from '../service/client.ts';

export type PullProgress =
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

/** How the service is watched while it pulls. */
export interface WatchOptions {
  readonly service: ServiceClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Milliseconds between two looks. */
  readonly pollMs: number;
  /** Milliseconds without progress after which what is not done is given up; 0 waits for ever. */
  readonly patienceMs: number;
  readonly onProgress: (progress: PullProgress) => void;
}

/** How long nothing may change before it is no longer waited for. */
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

  /** Told how far it is at each look; true once that has been the same for too long. */
  isOver(progress: number): boolean {
    const now = this.#clock.monotonic();
    if (progress !== this.#last) this.#since = now;
    this.#last = progress;
    return this.#ms > 0 && now - this.#since >= this.#ms;
  }
}
