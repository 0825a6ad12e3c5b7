import { messageOf } from '../../core/errors.ts';
import type { SendResult } from '../../core/sink.ts';

/**
 * What went wrong between us and a hub.
 * - `busy`: it throttles; it asks for four seconds of rest
 * - `too-large`, `rejected`: it does not want this message
 * - `denied`, `missing`: the key, the identity or the hub's name is wrong, which an operator can mend
 * - `aborted`: we were told to stop
 * - `lost`: everything else: no connection, no answer in time, a link that was closed
 */
export interface Failure {
  readonly kind: 'busy' | 'too-large' | 'rejected' | 'denied' | 'missing' | 'aborted' | 'lost';
  readonly reason: string;
}

/** Milliseconds the service wants to be left alone after it answered that it is busy. */
const BUSY_DELAY = 4000;

/** The SDK's codes, the weightier first: of several attempts the one that tells most counts. */
const KINDS: readonly (readonly [code: string, kind: Failure['kind']])[] = [
  ['ServerBusyError', 'busy'],
  ['QuotaExceededError', 'busy'],
  ['UnauthorizedError', 'denied'],
  ['MessagingEntityNotFoundError', 'missing'],
  ['MessagingEntityDisabledError', 'missing'],
  ['MessageTooLargeError', 'too-large'],
  ['ArgumentError', 'rejected'],
  ['ArgumentOutOfRangeError', 'rejected'],
  ['DecodeError', 'rejected'],
  ['InvalidFieldError', 'rejected'],
];

export function toFailure(error: unknown): Failure {
  const errors = flatten(error);
  for (const [code, kind] of KINDS) {
    const found = errors.find((each) => 'code' in each && each.code === code);
    if (found !== undefined) return { kind, reason: clean(found.message) };
  }
  const last = errors.at(-1);
  if (last?.name === 'AbortError') return { kind: 'aborted', reason: 'stopped before it was confirmed' };
  return { kind: 'lost', reason: clean(messageOf(last ?? error)) };
}

/** What an operator is told. */
export function explain(hub: string, { kind, reason }: Failure): string {
  return `event hub ${hub}: ${TOLD[kind] ?? ''}${reason}`;
}

const TOLD: Partial<Record<Failure['kind'], string>> = {
  denied: 'access is not allowed; check the key or the identity: ',
  missing: 'it does not exist or is disabled: ',
};

/** Trouble with the hub or the way to it, whatever was to be sent: nothing is refused because of it. */
export function troubleWith(hub: string, failure: Failure): SendResult {
  if (failure.kind === 'aborted') return { status: 'retry', reason: failure.reason };
  const reason = explain(hub, failure);
  if (failure.kind === 'busy') return { status: 'retry', reason, sink: true, delayMs: BUSY_DELAY };
  return { status: 'retry', reason, sink: true };
}

/** What a failed send means for the `count` events that were sent together. */
export function resultOf(hub: string, failure: Failure, count: number): SendResult {
  const code = REFUSALS[failure.kind];
  if (code === undefined) return troubleWith(hub, failure);
  const reason = explain(hub, failure);
  return count > 1 ? { status: 'refused', code, reason, batch: true } : { status: 'refused', code, reason };
}

const REFUSALS: Partial<Record<Failure['kind'], string>> = { 'too-large': 'too_large', rejected: 'rejected' };

/** After retries of its own the SDK throws all errors in one. */
function flatten(error: unknown): Error[] {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.flatMap(flatten);
  return error instanceof Error ? [error] : [];
}

/** Some of the SDK's messages quote the connection string. */
function clean(message: string): string {
  return message.replaceAll(/(SharedAccess(?:Key|Signature)=)[^;"\s]*/g, '$1[redacted]');
}
