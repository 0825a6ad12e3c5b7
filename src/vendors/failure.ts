import type { SendResult } from '../core/sink.ts';

/**
 * What went wrong between us and a broker.
 * - `busy`: it throttles, or a quota is used up
 * - `too-large`, `rejected`: it does not want this message
 * - `denied`, `missing`: the credentials, their rights or a name are wrong, which an operator can mend
 * - `late`: no answer in time; the messages may have been taken
 * - `aborted`: we were told to stop
 * - `lost`: everything else: no connection, or one that broke
 */
export interface Failure {
  readonly kind: 'busy' | 'too-large' | 'rejected' | 'denied' | 'missing' | 'late' | 'aborted' | 'lost';
  /** What an operator is told. */
  readonly reason: string;
  /** Milliseconds to stay away. */
  readonly delayMs?: number;
}

const STOPPED = 'stopped before it was confirmed';
export const STOPPED_FAILURE: Failure = { kind: 'aborted', reason: STOPPED };
export const ABORTED: SendResult = { status: 'retry', reason: STOPPED };

const REFUSALS: Partial<Record<Failure['kind'], string>> = { 'too-large': 'too_large', rejected: 'rejected' };

/**
 * Trouble with a place or the way to it, whatever was to be sent: nothing is refused because of it.
 * @param place such as `topic orders`
 */
export function troubleWith(
  place: string,
  { kind, reason, delayMs }: Failure,
): SendResult & { status: 'retry' } {
  if (kind === 'aborted') return { status: 'retry', reason };
  const delay = delayMs === undefined ? {} : { delayMs };
  return { status: 'retry', reason: `${place}: ${reason}`, sink: true, ...delay };
}

/** What follows in its order has this result where it has to be sent again; null where it need not wait. */
export function heldBy(result: SendResult): SendResult | null {
  const isHeld = result.status === 'retry' || (result.status === 'refused' && result.batch === true);
  return isHeld ? { status: 'retry', reason: result.reason } : null;
}

/** @param what the message has beside its body: `attributes` */
export function tooLarge(what: string, bytes: number, limit: number): SendResult {
  const reason = `with its ${what} it takes ${bytes} bytes, above the limit of ${limit}`;
  return { status: 'refused', code: 'too_large', reason };
}

/** What a failed send means for the `count` events that were sent together. */
export function resultOf(place: string, failure: Failure, count: number): SendResult {
  const code = REFUSALS[failure.kind];
  if (code === undefined) return troubleWith(place, failure);
  const refused = { status: 'refused', code, reason: `${place}: ${failure.reason}` } as const;
  return count > 1 ? { ...refused, batch: true } : refused;
}
