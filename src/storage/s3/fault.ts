import { S3ServiceException } from '@aws-sdk/client-s3';
import { messageOf } from '../../core/errors.ts';
import { type StorageFault, StorageError } from '../../core/storage.ts';
import { parseRetryAfter } from '../../lib/retry-after.ts';
import { faultByStatus, sayOf } from '../driver.ts';

/** Codes of the store that say more than their status does. */
const FAULTS: Readonly<Record<string, StorageFault>> = {
  NoSuchBucket: 'no_place',
  NoSuchKey: 'missing',
  NoSuchVersion: 'missing',
  NotFound: 'missing',
  PreconditionFailed: 'changed',
  // Two writers of one key at the same moment: one of them has to come again.
  ConditionalRequestConflict: 'busy',
  OperationAborted: 'busy',
  SlowDown: 'busy',
  ThrottlingException: 'busy',
  RequestTimeout: 'unreachable',
  ExpiredToken: 'denied',
  ExpiredTokenException: 'denied',
  TokenRefreshRequired: 'denied',
  InvalidToken: 'denied',
  CredentialsProviderError: 'denied',
  TokenProviderError: 'denied',
  InvalidObjectState: 'archived',
  NotImplemented: 'invalid',
};

/** As the SDK says it before it asks for anything. */
const NO_REGION = /^Region (is missing|not accepted)/;

export function faultOf(error: unknown): StorageError {
  const said = error as Partial<S3ServiceException> & {
    $response?: { headers?: Record<string, string> };
    code?: unknown;
  };
  const status = said.$metadata?.httpStatusCode;
  const name = said.name ?? '';
  const retryAfter = parseRetryAfter(said.$response?.headers?.['retry-after'], Date.now());
  const options = { cause: error, ...(retryAfter === null ? {} : { delayMs: retryAfter }) };
  const known = NO_REGION.test(messageOf(error)) ? 'denied' : FAULTS[name];
  const fault = isSkewed(said) ? 'busy' : (known ?? faultByStatus(status));
  const line = sayOf(messageFor(name, error), status);
  // An answer that is not the store's own, such as a proxy's.
  const isForeign = status !== undefined && !(error instanceof S3ServiceException);
  return new StorageError(fault, isForeign ? `HTTP ${status}: ${line}` : line, options);
}

/** What the store refuses for the same reason whatever the time is. */
const TIMELESS: ReadonlySet<string> = new Set(['AccessDenied', 'InvalidAccessKeyId']);

/**
 * A refusal that the clock may have caused: the SDK has taken the store's time from the answer, and signs the next request by it. As long
 * as the clocks differ it says so of each error, also of those that mean what they say.
 */
function isSkewed({ name = '', $metadata }: Partial<S3ServiceException>): boolean {
  if (name === 'RequestTimeTooSkewed') return true;
  const { httpStatusCode, clockSkewCorrected } = ($metadata ?? {}) as {
    readonly httpStatusCode?: number;
    readonly clockSkewCorrected?: boolean;
  };
  return clockSkewCorrected === true && httpStatusCode === 403 && !TIMELESS.has(name) && !(name in FAULTS);
}

/** One line, with the code: the SDK's message is often `UnknownError`, or empty. */
function messageFor(name: string, error: unknown): string {
  const [line = ''] = messageOf(error).split('\n');
  if (NO_REGION.test(line)) return `${line}: set storage.s3.region or AWS_REGION`;
  if (name === 'RequestTimeTooSkewed')
    return `${name}: this machine's clock differs too much from the store's`;
  return line.includes(name) || name === 'Error' ? line : `${name}: ${line}`;
}

interface Part {
  /** Each list of S3 says it. */
  readonly IsTruncated?: boolean | undefined;
}

/**
 * Whether a list goes on behind this part of it. What is no list, such as a page of a proxy, reads as an empty one.
 * @param next where it goes on
 * @throws StorageError
 */
export function goesOn({ IsTruncated }: Part, next: string | undefined): boolean {
  if (IsTruncated === undefined)
    throw new StorageError('unreachable', 'the answer to a request for a list is none');
  if (IsTruncated && (next === undefined || next === ''))
    throw new StorageError('invalid', 'the list goes on, and the store does not say where');
  return IsTruncated;
}
