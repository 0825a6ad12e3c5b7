import { messageOf } from '../../core/errors.ts';
import { STOPPED_FAILURE, type Failure } from '../failure.ts';

export const PERMISSION_DENIED = 7;

/** gRPC codes that say what is wrong. */
const KINDS: Readonly<Record<number, Failure['kind']>> = {
  1: 'aborted',
  3: 'rejected',
  4: 'late',
  5: 'missing',
  [PERMISSION_DENIED]: 'denied',
  8: 'busy',
  16: 'denied',
};

/** Milliseconds to wait if the service names no time: quotas are counted by the minute. */
const BUSY_DELAY = 1000;

/** A call that was not answered in time. */
export class LateError extends Error {
  readonly code = 4;
}

const ADVICE: Partial<Record<Failure['kind'], string>> = {
  denied: 'publishing denied; check the credentials and their permissions: ',
  missing: 'it does not exist: ',
};

export function toFailure(error: unknown): Failure {
  const reason = messageOf(error);
  const kind = KINDS[codeOf(error)] ?? 'lost';
  if (kind === 'aborted' || (error instanceof DOMException && error.name === 'AbortError'))
    return STOPPED_FAILURE;
  // After its own retries the SDK reports a used-up quota as a time-out, with the cause in its text.
  if (kind === 'busy' || (kind === 'late' && reason.includes('RESOURCE_EXHAUSTED'))) {
    return { kind: 'busy', reason, delayMs: delayOf(error) ?? BUSY_DELAY };
  }
  if (kind === 'rejected' && /too large|exceeds? the/i.test(reason)) return { kind: 'too-large', reason };
  return { kind, reason: `${ADVICE[kind] ?? ''}${reason}` };
}

/** gRPC's code of an error; -1 for one that has none. */
export function codeOf(error: unknown): number {
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
