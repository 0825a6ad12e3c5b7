import { messageOf } from '../../core/errors.ts';
import { isRecord } from '../../lib/parsed.ts';
import { STOPPED_FAILURE, type Failure } from '../failure.ts';

/** Milliseconds to wait after the service answered that it is busy. */
const BUSY_DELAY = 4000;

/** The SDK's codes. Of several errors the one that comes first here counts. */
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

const ADVICE: Partial<Record<Failure['kind'], string>> = {
  denied: 'access denied; check the key or the identity: ',
  missing: 'it does not exist or is disabled: ',
};

export function toFailure(error: unknown): Failure {
  const errors = flatten(error);
  for (const [code, kind] of KINDS) {
    const found = errors.find((each) => 'code' in each && each.code === code);
    if (found === undefined) continue;
    const reason = `${ADVICE[kind] ?? ''}${clean(found.message)}`;
    return kind === 'busy' ? { kind, reason, delayMs: BUSY_DELAY } : { kind, reason };
  }
  const last = errors.at(-1);
  if (last?.name === 'AbortError') return STOPPED_FAILURE;
  return { kind: 'lost', reason: clean(last === undefined ? descriptionOf(error) : last.message) };
}

/** After its own retries the SDK throws all errors in one. */
function flatten(error: unknown): Error[] {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.flatMap(flatten);
  return error instanceof Error ? [error] : [];
}

/** When a link could not be closed, the SDK throws the hub's condition, which is no Error. */
function descriptionOf(error: unknown): string {
  const description = isRecord(error) ? error['description'] : null;
  return typeof description === 'string' ? description : messageOf(error);
}

/** Some of the SDK's messages quote the connection string. */
function clean(message: string): string {
  return message.replaceAll(/(SharedAccess(?:Key|Signature)=)[^;"\s]*/g, '$1[redacted]');
}
