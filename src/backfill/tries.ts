import type { Clock } from '../core/clock.ts';
import { ServiceError } from '../service/errors.ts';
import type { Retry } from '../service/options.ts';
import { wait } from '../service/wait.ts';

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
