import fc from 'fast-check';
import { expect, it } from 'vitest';
import { memberOf } from '../../src/export/documents.ts';
import { decimalOf, microsOf } from '../../src/export/values.ts';

const UNIT = 10n ** 18n;

it('a decimal is exact whichever way it is written', () => {
  const parts = fc.record({
    units: fc.bigInt({ min: -(10n ** 37n), max: 10n ** 37n }),
    shift: fc.integer({ min: -15, max: 15 }),
  });
  fc.assert(
    fc.property(parts, ({ units, shift }) => {
      // units × 10^-18, with the point moved by an exponent that takes it back.
      const sign = units < 0n ? '-' : '';
      const digits = String(units < 0n ? -units : units).padStart(40, '0');
      const point = digits.length - 18 + shift;
      const text = `${sign}${BigInt(digits.slice(0, point))}.${digits.slice(point)}e${-shift}`;
      expect(decimalOf(text)).toBe(units);
    }),
  );
});

it('a decimal is rounded half away from zero', () => {
  expect(decimalOf('0.0000000000000000005')).toBe(1n);
  expect(decimalOf('-0.0000000000000000005')).toBe(-1n);
  expect(decimalOf('0.0000000000000000004999')).toBe(0n);
  expect(decimalOf('0.9999999999999999999')).toBe(UNIT);
  expect(decimalOf('9e-20')).toBe(0n);
  expect(decimalOf('-0')).toBe(0n);
  expect(decimalOf('1E2')).toBe(100n * UNIT);
});

it('a time is exact to the microsecond', () => {
  expect(microsOf('1970-01-01')).toBe(0n);
  expect(microsOf('1970-01-01T00:00:01')).toBe(1_000_000n);
  expect(microsOf('1970-01-01 01:00:00.5+01:00')).toBe(500_000n);
  expect(microsOf('1969-12-31T23:59:59.999999Z')).toBe(-1n);
  expect(microsOf('0001-01-01T00:00:00.000001-14:59')).toBe(-62_135_596_800_000_000n + 53_940_000_001n);
});

const found = (text: string): string | undefined => memberOf(Buffer.from(text), 'data')?.toString();

it('a member is found wherever it stands, the last one of its name', () => {
  expect(found(' { "x" : {"data":1} , "d\\u0061ta" : [ 2 ] } ')).toBe('[ 2 ]');
  expect(found('{"data":1,"data":{"a":"}"}}')).toBe('{"a":"}"}');
  expect(found('{}')).toBeUndefined();
  expect(() => found('[1]')).toThrow('not JSON');
  expect(() => found('{"a":1')).toThrow('ends too early');
});
