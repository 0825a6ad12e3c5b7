import type { Clock } from '../../core/clock.ts';
import { ServiceError } from '../service/errors.ts';
import type { Retry } from '../service/options.ts';
import { wait } from '../service/wait.ts';
import type { ServiceClient } from '../service/client.ts';

/** Tries of one task, on top of the client's attempts at a request: for answers that break off midway. */
const TRIES = 6;
const FIRST_PAUSE = 500;

/**
 * Does a task, and retries it after errors of the service that are retryable.
 * @param onRetry called before each pause
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
      // Other errors, such as a full disk, concern every task.
      if (signal.aborted || !(error instanceof ServiceError)) throw error;
      if (!error.retryable || attempt >= TRIES) throw error;
      const delayMs = error.retryAfterMs ?? FIRST_PAUSE * 2 ** (attempt - 1);
      onRetry?.({ operation: error.operation, attempt, delayMs, code: error.code, reason: error.message });
      await wait(clock, delayMs, signal);
    }
  }
}

/** Distinguishes a service that is down from users whose answers cannot be read. */
export class Silence {
  readonly #service: ServiceClient;
  readonly #most: number;
  #inRow = 0;

  /** @param most users in a row without an answer after which the service is asked for something else */
  constructor(service: ServiceClient, most: number) {
    this.#service = service;
    this.#most = most;
  }

  /**
   * Notes the error of a user, or null for an answer.
   * @throws ServiceError when the service does not answer at all; the signal's reason when it aborts
   */
  async note(error: ServiceError | null, signal: AbortSignal): Promise<void> {
    this.#inRow = isSilent(error) ? this.#inRow + 1 : 0;
    if (this.#inRow >= this.#most) await this.ended(signal);
  }

  /** To be called after the last user. @throws as `note` */
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
