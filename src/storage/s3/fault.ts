import { S3ServiceException } from '@aws-sdk/client-s3';
import { messageOf } from '../../core/errors.ts';
import { type StorageFault, StorageError } from '../../core/storage.ts';
import { parseRetryAfter } from '../../lib/retry-after.ts';
import { faultByStatus, sayOf } from '../driver.ts';

/** Codes that say more than their status. */
const FAULTS: Readonly<Record<string, StorageFault>> = {
  NoSuchBucket: 'no_place',
  NoSuchKey: 'missing',
  NoSuchVersion: 'missing',
  NotFound: 'missing',
  PreconditionFailed: 'changed',
  // Two writers of one key at the same moment: one of them has to retry.
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

/** The SDK's message before any request. */
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
  // An answer that is not the store's, but a proxy's.
  const isForeign = status !== undefined && !(error instanceof S3ServiceException);
  return new StorageError(fault, isForeign ? `HTTP ${status}: ${line}` : line, options);
}

/** Refusals that have nothing to do with the clock. */
const TIMELESS: ReadonlySet<string> = new Set(['AccessDenied', 'InvalidAccessKeyId']);

/**
 * A refusal that our clock may have caused: the SDK has read the store's time in the answer, and signs the next request with it. While the
 * clocks differ it marks every error so, also those with another cause.
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

/**
 * Whether a list has more pages. Every page of S3 has `IsTruncated`; the SDK reads anything else, such as a page of a proxy, as an
 * empty list.
 * @param next where the next page begins
 * @throws StorageError
 */
export function hasMore(
  { IsTruncated }: { readonly IsTruncated?: boolean | undefined },
  next: string | undefined,
): boolean {
  if (IsTruncated === undefined)
    throw new StorageError('unreachable', 'the answer to a request for a list is none');
  if (IsTruncated && (next === undefined || next === ''))
    throw new StorageError('invalid', 'the list has more pages, and the store does not say where');
  return IsTruncated;
}
