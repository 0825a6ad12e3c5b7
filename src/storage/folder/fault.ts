import { messageOf } from '../../core/errors.ts';
import { type StorageFault, StorageError } from '../../core/storage.ts';
import { errorCode, NotFollowed } from '../../lib/durable.ts';

const FAULTS: Readonly<Record<string, StorageFault>> = {
  ENOENT: 'missing',
  ENOTDIR: 'invalid',
  EISDIR: 'invalid',
  ENAMETOOLONG: 'invalid',
  EINVAL: 'invalid',
  EFBIG: 'invalid',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
};

/** A full or failing disk is a matter of time, or of somebody's doing; the same call can succeed later. */
export function faultOf(error: unknown, path: string): StorageError {
  const fault = error instanceof NotFollowed ? 'invalid' : (FAULTS[errorCode(error)] ?? 'unreachable');
  return new StorageError(fault, `${path}: ${messageOf(error)}`, { cause: error });
}
