import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  aboutBytes,
  aboutDuration,
  formatBytes,
  formatDuration,
  parseBytes,
  parseDuration,
} from '../../src/lib/units.ts';

interface Unit {
  readonly what: string;
  readonly parse: (text: string | number) => number;
  readonly format: (value: number) => string;
  readonly read: [text: string | number, value: number][];
  readonly refused: (string | number)[];
  readonly written: [text: string, value: number][];
}

describe.each<Unit>([
  {
    what: 'sizes',
    parse: parseBytes,
    format: formatBytes,
    read: [
      ['128MiB', 134_217_728],
      ['10MB', 10_000_000],
      ['1.5 GiB', 1_610_612_736],
      ['16kib', 16_384],
      ['512', 512],
      ['7B', 7],
      [42, 42],
      [0, 0],
    ],
    refused: ['', '10 parsecs', '-1MB', '1e9', 'MiB', '99999999TiB', 'NaN', '5m', -1, Number.NaN, Infinity],
    written: [
      ['128MiB', 134_217_728],
      ['10MB', 10_000_000],
      ['1234B', 1234],
      ['0B', 0],
    ],
  },
  {
    what: 'durations',
    parse: parseDuration,
    format: formatDuration,
    read: [
      ['500ms', 500],
      ['5m', 300_000],
      ['7d', 604_800_000],
      ['1.5h', 5_400_000],
      ['2 w', 1_209_600_000],
      ['250', 250],
      [250, 250],
    ],
    refused: ['', '5 minutes', '-5m', '1h30m', 'forever'],
    written: [
      ['5m', 300_000],
      ['7d', 604_800_000],
      ['1500ms', 1500],
      ['0ms', 0],
    ],
  },
])('$what', ({ parse, format, read, refused, written }) => {
  it.each(read)('%s is read as %i', (text, value) => expect(parse(text)).toBe(value));

  it.each(refused)('%j is refused', (text) => expect(() => parse(text)).toThrow(RangeError));

  it.each(written)('%s is written of %i, in the largest exact unit', (text, value) =>
    expect(format(value)).toBe(text),
  );

  it('reads back whatever it writes', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (value) => {
        expect(parse(format(value))).toBe(value);
      }),
    );
  });
});

it.each([
  [aboutBytes, 0, '0 B'],
  [aboutBytes, 1023, '1023 B'],
  [aboutBytes, 1434, '1.4 KiB'],
  [aboutBytes, 123_456_789, '117.7 MiB'],
  [aboutBytes, 10 * 2 ** 30, '10 GiB'],
  [aboutDuration, 12, '1s'],
  [aboutDuration, 89_100, '1m 30s'],
  [aboutDuration, 200_000, '3m 20s'],
  [aboutDuration, 3_600_000, '1h'],
  [aboutDuration, 86_461_000, '1d'],
  [aboutDuration, 187_200_000, '2d 4h'],
])('$0 of %i is %s', (about, value, text) => {
  expect(about(value)).toBe(text);
});
