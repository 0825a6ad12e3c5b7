import { messageOf } from '../../core/errors.ts';
import { StorageError, type StorageFault } from '../../core/storage.ts';
import { parseRetryAfter } from '../../lib/retry-after.ts';
import { faultByStatus } from '../driver.ts';

/** An answer with an error. */
export class AnswerError extends Error {
  readonly status: number;
  /** Of its first error, such as `notFound` or `conditionNotMet`. */
  readonly reason: string;
  readonly retryAfter: string | undefined;

  constructor(
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
    text: string,
  ) {
    const { reason, message } = said(text);
    super(`${status} ${message}`);
    this.status = status;
    this.reason = reason;
    this.retryAfter = [headers['retry-after']].flat()[0];
  }
}

const FAULTS: Readonly<Record<string, StorageFault>> = {
  rateLimitExceeded: 'busy',
  userRateLimitExceeded: 'busy',
  quotaExceeded: 'busy',
  conditionNotMet: 'changed',
  retentionPolicyNotMet: 'immutable',
  objectUnderActiveHold: 'immutable',
};

/** Text of an object under a hold, whose reason is only that of a missing right. */
const KEPT = /cannot be deleted, overwritten or archived/;

export function faultOf(error: unknown): StorageError {
  if (!(error instanceof AnswerError))
    return new StorageError(withoutAnswer(error), lineOf(error), { cause: error });
  const { status, reason, retryAfter } = error;
  const isBucket = status === 404 && /bucket/i.test(error.message) && !/object/i.test(error.message);
  const isKept = status === 403 && KEPT.test(error.message);
  const fault = isBucket ? 'no_place' : isKept ? 'immutable' : (FAULTS[reason] ?? faultByStatus(status));
  const delayMs = parseRetryAfter(retryAfter, Date.now());
  const options = { cause: error, ...(delayMs === null ? {} : { delayMs }) };
  return new StorageError(fault, lineOf(error), options);
}

/** `denied` when the credentials are missing or refused; else the connection failed. */
function withoutAnswer(error: unknown): StorageFault {
  const { status, code } = error as { status?: unknown; code?: unknown };
  const isRefused = [400, 401, 403].some((refused) => refused === Number(status ?? code));
  return isRefused || /default credentials|invalid_grant|ENOENT/.test(messageOf(error))
    ? 'denied'
    : 'unreachable';
}

function lineOf(error: unknown): string {
  return messageOf(error).split('\n')[0] ?? '';
}

function said(text: string): { reason: string; message: string } {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: string; errors?: { reason?: string }[] } };
    return { reason: error?.errors?.[0]?.reason ?? '', message: error?.message ?? '' };
  } catch {
    return { reason: '', message: text.slice(0, 200) };
  }
}
