import { expect, it } from 'vitest';
import { parseOptions } from '../../src/sinks/files/config.ts';

it('fills in defaults and reads units', () => {
  expect(parseOptions({ path: 'a' })).toEqual({
    path: 'a',
    spool: null,
    compress: 'gzip',
    rotate: { bytes: 134_217_728, every: 3_600_000 },
    partitionBy: ['date'],
  });
  expect(parseOptions({ path: 'a', rotate: { bytes: '1MiB', every: 60_000 } }).rotate).toEqual({
    bytes: 1_048_576,
    every: 60_000,
  });
});

it.each([
  [{}, 'path: '],
  [{ path: 'gcs://acme/archive' }, 'path: gcs:// is not known here'],
  [{ path: 'a', compres: 'gzip' }, 'compres'],
  [{ path: 'a', compress: 'brotli' }, 'compress: '],
  [{ path: 'a', rotate: { bytes: 'much' } }, 'rotate.bytes: must be a size such as'],
  [{ path: 'a', rotate: { every: '0s' } }, 'rotate.every: '],
  [{ path: 'a', partitionBy: ['date', 'day'] }, 'partitionBy[1]: '],
  [{ path: 'a', partitionBy: ['date', 'date'] }, 'partitionBy: names a key twice'],
])('names the key that is wrong: %j', (options, expected) => {
  expect(() => parseOptions(options)).toThrow(expected);
});

it('a place in a store is told without / at its end', () => {
  expect(parseOptions({ path: 's3://bucket/lake/' }).path).toBe('s3://bucket/lake');
});
