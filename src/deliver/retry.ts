/** How long to wait between tries, milliseconds. */
export interface RetryOptions {
  readonly initial: number;
  readonly max: number;
  /** Age at which an event that was tried without success becomes a dead letter; 0 retries without end. */
  readonly giveUpAfter: number;
}

/**
 * Exponential backoff with jitter: between half and the whole of `initial · 2^(attempt − 1)`, capped at `max`. Half is
 * random so that senders that failed together do not come back together; the other half keeps the wait growing.
 *
 * @param attempt 1 after the first failure
 */
export function backoff(
  attempt: number,
  { initial, max }: Pick<RetryOptions, 'initial' | 'max'>,
  random: () => number = Math.random,
): number {
  const whole = Math.min(max, initial * 2 ** Math.min(attempt - 1, 30));
  return whole / 2 + (whole / 2) * random();
}
