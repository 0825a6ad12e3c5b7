import { StorageError } from '../../core/storage.ts';

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
