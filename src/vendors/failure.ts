import type { SendResult } from '../core/sink.ts';

/**
 * A failed call of a broker or a service.
 * - `busy`: it throttles, or a quota is used up
 * - `too-large`, `rejected`: it refuses this message
 * - `denied`, `missing`: the credentials, their rights or a name are wrong, which an operator can correct
 * - `late`: no answer in time; the messages may have been accepted
 * - `aborted`: the caller's signal aborted
 * - `lost`: everything else: no connection, or one that broke
 */
export interface Failure {
  readonly kind: 'busy' | 'too-large' | 'rejected' | 'denied' | 'missing' | 'late' | 'aborted' | 'lost';
  /** For the operator. */
  readonly reason: string;
  /** Milliseconds to wait before the next call. */
  readonly delayMs?: number;
}

const STOPPED = 'stopped before it was confirmed';
export const STOPPED_FAILURE: Failure = { kind: 'aborted', reason: STOPPED };
export const ABORTED: SendResult = { status: 'retry', reason: STOPPED };

const REFUSALS: Partial<Record<Failure['kind'], string>> = { 'too-large': 'too_large', rejected: 'rejected' };

/** The result for events that were not sent because of a failure: none of them is refused. @param place such as `topic orders` */
export function troubleWith(
  place: string,
  { kind, reason, delayMs }: Failure,
): SendResult & { status: 'retry' } {
  if (kind === 'aborted') return { status: 'retry', reason };
  const delay = delayMs === undefined ? {} : { delayMs };
  return { status: 'retry', reason: `${place}: ${reason}`, sink: true, ...delay };
}

/** The result for the events behind this one in their order: they are sent again after it. Null when they need not wait. */
export function heldBy(result: SendResult): SendResult | null {
  const isHeld = result.status === 'retry' || (result.status === 'refused' && result.batch === true);
  return isHeld ? { status: 'retry', reason: result.reason } : null;
}

/** @param what the message has besides its body: `attributes` */
export function tooLarge(what: string, bytes: number, limit: number): SendResult {
  const reason = `with its ${what} it takes ${bytes} bytes, above the limit of ${limit}`;
  return { status: 'refused', code: 'too_large', reason };
}

/** The result of a failed send for each of the `count` events that were sent together. */
export function resultOf(place: string, failure: Failure, count: number): SendResult {
  const code = REFUSALS[failure.kind];
  if (code === undefined) return troubleWith(place, failure);
  const refused = { status: 'refused', code, reason: `${place}: ${failure.reason}` } as const;
  return count > 1 ? { ...refused, batch: true } : refused;
}
