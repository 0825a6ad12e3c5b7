import { messageOf } from '../../core/errors.ts';
import { DELIVERED, type SendResult } from '../../core/sink.ts';
import { parseRetryAfter } from '../../lib/retry-after.ts';

/** Milliseconds of the longest pause that a target can ask for. */
const LONGEST_MS = 3_600_000;
/** Milliseconds of the pause when it throttles and does not say how long. */
const BUSY_MS = 1000;

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/**
 * The result of an event after an answer.
 * @param place such as `target billing`
 * @param retried statuses 4xx after which the event is sent again
 * @param now milliseconds since the epoch
 */
export function resultOf(
  place: string,
  { status, retryAfter }: Answer,
  retried: readonly number[],
  now: number,
): SendResult {
  if (status >= 200 && status < 300) return DELIVERED;
  const reason = `${place} answered ${status}${ADVICE[status] ?? ''}`;
  if (status >= 400 && status < 500 && !retried.includes(status))
    return { status: 'refused', code: status === 413 ? 'too_large' : 'rejected', reason };
  if (status >= 300 && status < 400)
    return { status: 'retry', reason: `${reason}; redirects are not followed, correct its url` };
  const asked = parseRetryAfter(retryAfter, now);
  const delayMs = asked === null ? (THROTTLING.has(status) ? BUSY_MS : null) : Math.min(asked, LONGEST_MS);
  return delayMs === null ? { status: 'retry', reason } : { status: 'retry', reason, delayMs };
}

/** Statuses that concern the target as a whole, not only this event. */
export const THROTTLING: ReadonlySet<number> = new Set([429, 503]);

const ADVICE: Readonly<Record<number, string>> = {
  401: '; check its secrets and headers',
  403: '; check its secrets and headers',
  404: '; check its url',
};

/** The result after an error of the connection, which says nothing about the event. */
export function failureOf(place: string, error: unknown): SendResult & { readonly status: 'retry' } {
  const cause = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  return { status: 'retry', reason: `${place}: ${messageOf(cause) || 'the connection failed'}` };
}
