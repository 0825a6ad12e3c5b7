import { expect, it } from 'vitest';
import { folderError } from '../../src/core/errors.ts';
import { StorageError } from '../../src/core/storage.ts';

it('a store that cannot be used is no folder, and what to do is said', () => {
  const error = folderError('s3://none/lake', new StorageError('no_place', 'NoSuchBucket'));
  expect([error.code, error.detail]).toEqual([
    'store_unreadable',
    's3://none/lake: NoSuchBucket: create the bucket or container, or correct the URL',
  ]);
  expect(folderError('/srv/lake', new StorageError('denied', 'EACCES')).code).toBe('folder_unwritable');
});
