import type { ServiceError } from './errors.ts';

export interface Retries {
  /** Attempts in all. Default 6; 1 never repeats. */
  readonly attempts: number;
  /** Upper bound of the first delay, doubled each time. Default 500 ms. */
  readonly baseMs: number;
  /** No delay of ours is longer. Default 30 s. */
  readonly maxMs: number;
  /** A longer Retry-After is handed to the caller instead of waiting. Default 5 minutes. */
  readonly maxRetryAfterMs: number;
}

/**
 * Milliseconds until the next attempt, or null when there is to be none. What may have been done already is repeated
 * for idempotent operations only. Delays are drawn from the upper half of a doubling bound, so that many clients part.
 */
export function retryDelay(
  error: ServiceError,
  { attempt, idempotent }: { readonly attempt: number; readonly idempotent: boolean },
  retries: Retries,
  random: () => number,
): number | null {
  if (!error.retryable || attempt >= retries.attempts) return null;
  if (error.maybeApplied && !idempotent) return null;
  const bound = Math.min(retries.maxMs, retries.baseMs * 2 ** (attempt - 1));
  const delay = bound * (0.5 + random() / 2);
  if (error.retryAfterMs === null) return delay;
  // The jitter comes on top: everybody who was told the same second would come back in it.
  return error.retryAfterMs > retries.maxRetryAfterMs ? null : error.retryAfterMs + random() * retries.baseMs;
}
