import type { Clock } from '../../core/clock.ts';
import { ServiceError } from '../service/errors.ts';
import type { Retry } from '../service/options.ts';
import { wait } from '../service/wait.ts';
import type { ServiceClient } from '../service/client.ts';

/** Tries at one task, beside the client's own at one request: for answers that break off midway. */
const TRIES = 6;
const FIRST_PAUSE = 500;

/**
 * Does a task of the service, again if what came of it may pass.
 * @param onRetry told before each pause
 * @throws what the last try has thrown; the signal's reason when it aborts
 */
export async function withTries<T>(
  work: () => Promise<T>,
  clock: Clock,
  signal: AbortSignal,
  onRetry?: (retry: Retry) => void,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      // What the service has not caused, such as a full disk, is the same for every task.
      if (signal.aborted || !(error instanceof ServiceError)) throw error;
      if (!error.retryable || attempt >= TRIES) throw error;
      const delayMs = error.retryAfterMs ?? FIRST_PAUSE * 2 ** (attempt - 1);
      onRetry?.({ operation: error.operation, attempt, delayMs, code: error.code, reason: error.message });
      await wait(clock, delayMs, signal);
    }
  }
}

/** Tells a service that is gone from users whose answers cannot be had. */
export class Silence {
  readonly #service: ServiceClient;
  readonly #most: number;
  #inRow = 0;

  /** @param most users in a row without an answer, after whom the service is asked for something else */
  constructor(service: ServiceClient, most: number) {
    this.#service = service;
    this.#most = most;
  }

  /**
   * Told what came of each user: an error, or null where something came.
   * @throws ServiceError when the service answers nothing at all; the signal's reason when it aborts
   */
  async told(error: ServiceError | null, signal: AbortSignal): Promise<void> {
    this.#inRow = isSilent(error) ? this.#inRow + 1 : 0;
    if (this.#inRow >= this.#most) await this.ended(signal);
  }

  /** No more users: the last of them may have met a service that is gone. @throws as `told` */
  async ended(signal: AbortSignal): Promise<void> {
    if (this.#inRow === 0) return;
    this.#inRow = 0;
    try {
      await this.#service.users.list({ limit: 1 }, { signal });
    } catch (cause) {
      if (!(cause instanceof ServiceError) || isSilent(cause)) throw cause;
    }
  }
}

function isSilent(error: ServiceError | null): boolean {
  return error !== null && error.retryable && (error.status === null || error.status >= 500);
}
