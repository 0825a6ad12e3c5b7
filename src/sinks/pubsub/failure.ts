import { messageOf } from '../../core/errors.ts';
import type { SendResult } from '../../core/sink.ts';

/**
 * What went wrong between us and Pub/Sub.
 * - `busy`: a quota is used up; it may say for how long
 * - `too-large`, `rejected`: it does not want this request
 * - `denied`, `missing`: the credentials, their rights or the topic's name are wrong, which an operator can mend
 * - `late`: no answer in time; the messages may have been taken
 * - `aborted`: we were told to stop
 * - `lost`: everything else: no connection, or one that broke
 */
export interface Failure {
  readonly kind: 'busy' | 'too-large' | 'rejected' | 'denied' | 'missing' | 'late' | 'aborted' | 'lost';
  readonly reason: string;
  /** Milliseconds, where the service said how long to wait. */
  readonly delayMs?: number;
}

/** gRPC's codes that say more than that something is wrong. */
const KINDS: Readonly<Record<number, Failure['kind']>> = {
  1: 'aborted',
  3: 'rejected',
  4: 'late',
  5: 'missing',
  7: 'denied',
  8: 'busy',
  16: 'denied',
};

/** Milliseconds to stay away where the service does not say: quotas are counted by the minute. */
const BUSY_DELAY = 1000;

/** A call that took longer than it may. */
export class LateError extends Error {
  readonly code = 4;
}

export function toFailure(error: unknown): Failure {
  const reason = messageOf(error);
  if (error instanceof DOMException && error.name === 'AbortError')
    return { kind: 'aborted', reason: STOPPED };
  const kind = KINDS[codeOf(error)] ?? 'lost';
  if (kind === 'aborted') return { kind, reason: STOPPED };
  // After retries of its own the SDK reports a used-up quota as a time-out with the true reason in its text.
  if (kind === 'busy' || (kind === 'late' && reason.includes('RESOURCE_EXHAUSTED'))) {
    return { kind: 'busy', reason, delayMs: delayOf(error) ?? BUSY_DELAY };
  }
  if (kind === 'rejected' && /too large|exceeds? the/i.test(reason)) return { kind: 'too-large', reason };
  return { kind, reason };
}

/** Trouble with Pub/Sub or the way to it, whatever was to be sent: nothing is refused because of it. */
export function troubleWith(topic: string, { kind, reason, delayMs }: Failure): SendResult {
  if (kind === 'aborted') return { status: 'retry', reason };
  const told = `topic ${topic}: ${TOLD[kind] ?? ''}${reason}`;
  return { status: 'retry', reason: told, sink: true, ...(delayMs === undefined ? {} : { delayMs }) };
}

const TOLD: Partial<Record<Failure['kind'], string>> = {
  denied: 'publishing is not allowed; check the credentials and their rights: ',
  missing: 'it does not exist: ',
};

/** What a failed request means for the `count` events that were in it. */
export function resultOf(topic: string, failure: Failure, count: number): SendResult {
  const code = REFUSALS[failure.kind];
  if (code === undefined) return troubleWith(topic, failure);
  const reason = `topic ${topic}: ${failure.reason}`;
  return count > 1 ? { status: 'refused', code, reason, batch: true } : { status: 'refused', code, reason };
}

const REFUSALS: Partial<Record<Failure['kind'], string>> = { 'too-large': 'too_large', rejected: 'rejected' };

const STOPPED = 'stopped before it was confirmed';

function codeOf(error: unknown): number {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : -1;
}

/** The wait in a google.rpc.RetryInfo among the status details, milliseconds. */
function delayOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusDetails' in error) || !Array.isArray(error.statusDetails))
    return undefined;
  for (const detail of error.statusDetails as readonly { readonly retryDelay?: RetryDelay }[]) {
    if (detail.retryDelay === undefined) continue;
    const { seconds = 0, nanos = 0 } = detail.retryDelay;
    return Number(seconds) * 1000 + nanos / 1e6;
  }
  return undefined;
}

interface RetryDelay {
  readonly seconds?: number | string;
  readonly nanos?: number;
}
