import type { RestError } from '@azure/storage-blob';
import { messageOf } from '../../core/errors.ts';
import { StorageError, type StorageFault } from '../../core/storage.ts';
import { parseRetryAfter } from '../../lib/retry-after.ts';
import { faultByStatus, sayOf } from '../driver.ts';

/** Codes that say more than their status. */
const FAULTS: Readonly<Record<string, StorageFault>> = {
  ContainerNotFound: 'no_place',
  ContainerDisabled: 'no_place',
  // For a minute after its removal; then ContainerNotFound.
  ContainerBeingDeleted: 'no_place',
  AccountIsDisabled: 'no_place',
  BlobNotFound: 'missing',
  ResourceNotFound: 'missing',
  BlobAlreadyExists: 'changed',
  ConditionNotMet: 'changed',
  TargetConditionNotMet: 'changed',
  BlobArchived: 'archived',
  BlobBeingRehydrated: 'archived',
  ServerBusy: 'busy',
  OperationTimedOut: 'unreachable',
  BlobImmutableDueToPolicy: 'immutable',
  BlobImmutableDueToLegalHold: 'immutable',
  // Waiting does not help.
  LeaseIdMissing: 'denied',
  SnapshotsPresent: 'denied',
};

/** Names of sign-in errors, which are of many classes. */
const SIGN_IN =
  /^(Authentication|AggregateAuthentication|CredentialUnavailable|AuthenticationRequired)Error$/;

export function faultOf(error: unknown): StorageError {
  const { statusCode, name = '', code = '', ...said } = error as Partial<RestError>;
  const details = said.details as { errorCode?: string } | undefined;
  const named = details?.errorCode ?? said.response?.headers.get('x-ms-error-code') ?? code;
  const retryAfter = parseRetryAfter(said.response?.headers.get('retry-after'), Date.now());
  const fault = SIGN_IN.test(name) ? 'denied' : (FAULTS[named] ?? faultByStatus(statusCode));
  const options = { cause: error, ...(retryAfter === null ? {} : { delayMs: retryAfter }) };
  return new StorageError(fault, sayOf(lineOf(error, named), statusCode), options);
}

/** One line, with the code; the SDK's message has more lines, with ids of the request. */
function lineOf(error: unknown, named: string): string {
  const [line = ''] = messageOf(error).split('\n');
  // The message may quote an address with a signature in it.
  const text = line.replaceAll(/([?&]sig=)[^&\s"]*/g, '$1[redacted]');
  return named === '' || text.includes(named) ? text : `${named}: ${text}`;
}
