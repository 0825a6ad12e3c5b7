import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatBytes, formatDuration, parseBytes, parseDuration } from '../../src/lib/units.ts';

describe('sizes', () => {
  it.each([
    ['128MiB', 134_217_728],
    ['10MB', 10_000_000],
    ['1.5 GiB', 1_610_612_736],
    ['16kib', 16_384],
    ['512', 512],
    ['7B', 7],
    [42, 42],
    [0, 0],
  ])('reads %s', (text, bytes) => expect(parseBytes(text)).toBe(bytes));

  it.each(['', '10 parsecs', '-1MB', '1e9', 'MiB', '99999999TiB', 'NaN', '5m'])('refuses %j', (text) =>
    expect(() => parseBytes(text)).toThrow(RangeError),
  );

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('refuses the number %d', (value) =>
    expect(() => parseBytes(value)).toThrow(RangeError),
  );

  it('writes the shortest exact form', () => {
    expect(formatBytes(134_217_728)).toBe('128MiB');
    expect(formatBytes(10_000_000)).toBe('10MB');
    expect(formatBytes(1234)).toBe('1234B');
    expect(formatBytes(0)).toBe('0B');
  });

  it('reads back whatever it writes', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(parseBytes(formatBytes(bytes))).toBe(bytes);
      }),
    );
  });
});

describe('durations', () => {
  it.each([
    ['500ms', 500],
    ['5m', 300_000],
    ['7d', 604_800_000],
    ['1.5h', 5_400_000],
    ['2 w', 1_209_600_000],
    ['250', 250],
    [250, 250],
  ])('reads %s', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each(['', '5 minutes', '-5m', '1h30m', 'forever'])('refuses %j', (text) =>
    expect(() => parseDuration(text)).toThrow(RangeError),
  );

  it('writes the largest exact unit', () => {
    expect(formatDuration(300_000)).toBe('5m');
    expect(formatDuration(604_800_000)).toBe('7d');
    expect(formatDuration(1_500)).toBe('1500ms');
    expect(formatDuration(0)).toBe('0ms');
  });

  it('reads back whatever it writes', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});
