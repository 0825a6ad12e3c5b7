import { describe, expect, test } from 'vitest';
import { isStoreUrl, parsePlace } from '../../src/core/place.ts';
import { openStore } from '../../src/storage/open.ts';

describe('a place', () => {
  test.each([
    ['s3://acme', { scheme: 's3', bucket: 'acme', prefix: '' }],
    ['s3://acme/', { scheme: 's3', bucket: 'acme', prefix: '' }],
    ['S3://acme/a/b c/', { scheme: 's3', bucket: 'acme', prefix: 'a/b c' }],
    ['azblob://$web/dt=2026-11-22', { scheme: 'azblob', bucket: '$web', prefix: 'dt=2026-11-22' }],
    ['gs://acme.example_1/x', { scheme: 'gs', bucket: 'acme.example_1', prefix: 'x' }],
  ])('%s is a store', (place, parsed) => {
    expect(parsePlace(place)).toEqual(parsed);
    expect(isStoreUrl(place)).toBe(true);
  });

  test.each(['./data/archive', '/var/lib', 'C:\\data', 'C:/data', 's3', 'a:b', 'data//x'])(
    '%s is a folder',
    (place) => {
      expect(parsePlace(place)).toEqual({ scheme: 'folder', path: place });
      expect(isStoreUrl(place)).toBe(false);
    },
  );

  test.each(['gcs://acme/x', 'file:///tmp/x', 'https://acme.example/x', 's4://acme'])(
    '%s is an error that names what is known, and never a folder',
    async (place) => {
      expect(() => parsePlace(place)).toThrow(/s3:\/\/, azblob:\/\/, gs:\/\/, or the path of a folder/);
      await expect(openStore(place)).rejects.toMatchObject({ code: 'usage' });
    },
  );

  test.each([
    's3:acme/x',
    's3:/acme/x',
    's3://',
    's3:///x',
    's3://a:secret@acme/x',
    's3://acme/a//b',
    's3://acme/../b',
    'gs://acme/x?secret=1',
    'azblob://ac me/x',
  ])('%s is refused, and no more of it is repeated than its scheme and bucket', (place) => {
    expect(() => parsePlace(place)).toThrow(/^(?!.*secret)/);
  });
});
