import fc from 'fast-check';
import { expect, it } from 'vitest';
import { memberOf } from '../../src/tables/documents.ts';
import { appendValue } from '../../src/export/parquet/physical.ts';
import { ByteWriter } from '../../src/lib/byte-writer.ts';
import type { ColumnType } from '../../src/tables/definition.ts';

const UNIT = 10n ** 18n;

/** The bytes of a value given as JSON. */
function stored(type: ColumnType, json: string): Buffer {
  const out = new ByteWriter(1);
  const bytes = Buffer.from(`[${json}]`);
  appendValue(type, out, bytes, 1, json.includes('\\') ? 1 - bytes.length : bytes.length - 1);
  return Buffer.from(out.view());
}

function decimalOf(json: string): bigint {
  return BigInt.asIntN(128, BigInt(`0x${stored('decimal', json).toString('hex')}`));
}

const microsOf = (text: string): bigint => stored('timestamp', `"${text}"`).readBigInt64LE();
const textOf = (json: string): string => stored('text', json).subarray(4).toString();

const units = fc.bigInt({ min: -(10n ** 37n), max: 10n ** 37n });

function decimalText(amount: bigint, shift: number): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(40, '0');
  const point = digits.length - 18 + shift;
  return `${amount < 0n ? '-' : ''}${BigInt(digits.slice(0, point))}.${digits.slice(point)}`;
}

it('a decimal is exact in every notation', () => {
  fc.assert(
    fc.property(units, fc.integer({ min: -15, max: 15 }), (amount, shift) => {
      // The point is moved by an exponent that takes it back.
      expect(decimalOf(`${decimalText(amount, shift)}e${-shift}`)).toBe(amount);
    }),
  );
  fc.assert(
    fc.property(units, (amount) => {
      const text = decimalText(amount, 0);
      expect(decimalOf(text)).toBe(amount);
      expect(decimalOf(text.replace(/\.?0+$/, ''))).toBe(amount);
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
  expect(decimalOf('-12.5')).toBe((-25n * UNIT) / 2n);
  expect(decimalOf('1E2')).toBe(100n * UNIT);
  expect(decimalOf('99999999999999999999')).toBe((10n ** 20n - 1n) * UNIT);
});

it('a whole number is exact in all of its 64 bits', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.nat(63), (amount, bits) => {
      const short = amount >> BigInt(bits);
      expect(stored('integer', String(short)).readBigInt64LE()).toBe(short);
    }),
  );
});

it('a time is exact to the microsecond', () => {
  expect(microsOf('1970-01-01')).toBe(0n);
  expect(microsOf('1970-01-01T00:00:01')).toBe(1_000_000n);
  expect(microsOf('1970-01-01 01:00:00.5+01:00')).toBe(500_000n);
  expect(microsOf('1969-12-31T23:59:59.999999Z')).toBe(-1n);
  expect(microsOf('0001-01-01T00:00:00.000001-14:59')).toBe(-62_135_596_800_000_000n + 53_940_000_001n);
  // What is finer is cut off, whatever stands behind it.
  expect(microsOf('1970-01-01T00:00:00.9999999')).toBe(999_999n);
  expect(microsOf('1970-01-01T01:00:00.123456789+01:00')).toBe(123_456n);
  expect(microsOf('1969-12-31T23:59:59.9999999Z')).toBe(-1n);
  const times = fc.date({
    min: new Date('0001-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(times, fc.nat(999), (time, micros) => {
      const text = time.toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`);
      expect(microsOf(text)).toBe(BigInt(time.getTime()) * 1000n + BigInt(micros));
      expect(stored('date', `"${text.slice(0, 10)}"`).readInt32LE()).toBe(
        Math.floor(time.getTime() / 86_400_000),
      );
    }),
  );
});

it('a text is what JSON says, but for what no warehouse takes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(textOf(JSON.stringify(text))).toBe(text.replaceAll('\0', '\ufffd').toWellFormed());
    }),
  );
  expect(textOf('"\\u0041\\/\\ud83d\\ude00\\ud83d"')).toBe('A/😀\ufffd');
  expect(stored('timestamp', '"1970-01-01T00:00:0\\u0031"').readBigInt64LE()).toBe(1_000_000n);
});

const found = (text: string): string | undefined => memberOf(Buffer.from(text), 'data')?.toString();

it('a member is found wherever it stands, the last one of its name', () => {
  expect(found(' { "x" : {"data":1} , "d\\u0061ta" : [ 2 ] } ')).toBe('[ 2 ]');
  expect(found('{"data":1,"data":{"a":"}"}}')).toBe('{"a":"}"}');
  expect(found('{}')).toBeUndefined();
  expect(() => found('[1]')).toThrow('not JSON');
  expect(() => found('{"a":1')).toThrow('ends too early');
});
