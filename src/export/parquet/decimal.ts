import type { ByteWriter } from '../../lib/byte-writer.ts';
import { MINUS, POINT, ZERO } from '../../lib/json-text.ts';
import { DECIMAL_SCALE, DECIMAL_WHOLE, latin1 } from '../../tables/shape/column-types.ts';

export const DECIMAL_PRECISION = DECIMAL_WHOLE + DECIMAL_SCALE;
export const DECIMAL_BYTES = 16;

/** Of an exponent, in lower case. */
const EXPONENT = 0x65;
const CASE = 0x20;

/** Units in pieces of 16 bits, the lowest first, so that products of pieces stay integers of 31 bits. */
const pieces = new Int32Array(DECIMAL_BYTES / 2);
/** Digits that are added in one step, and their power of ten. */
const AT_ONCE = 4;
const POWER = 10_000;

/** Adds a JSON number as an integer of 10^-18: 128 bits, big-endian, in two's complement. */
export function appendDecimal(out: ByteWriter, bytes: Uint8Array, from: number, to: number): void {
  const { buffer, length } = out;
  out.length += DECIMAL_BYTES;
  if (!isSimple(bytes, from, to)) {
    const units = decimalOf(latin1(bytes, from, to));
    buffer.writeBigInt64BE(units >> 64n, length);
    buffer.writeBigUInt64BE(BigInt.asUintN(64, units), length + 8);
    return;
  }
  const negative = bytes[from] === MINUS;
  toPieces(bytes, negative ? from + 1 : from, to);
  let carry = 1;
  for (let i = 0; i < pieces.length; i += 1) {
    let piece = pieces[i] as number;
    if (negative) {
      piece = (piece ^ 0xffff) + carry;
      carry = piece >> 16;
    }
    buffer[length + DECIMAL_BYTES - 1 - 2 * i] = piece;
    buffer[length + DECIMAL_BYTES - 2 - 2 * i] = piece >> 8;
  }
}

/** True for a number without an exponent and without digits to round. */
function isSimple(bytes: Uint8Array, from: number, to: number): boolean {
  let point = to;
  for (let i = from; i < to; i += 1) {
    const c = bytes[i] as number;
    if ((c | CASE) === EXPONENT) return false;
    if (c === POINT) point = i;
  }
  return to - point - 1 <= DECIMAL_SCALE && point - from <= DECIMAL_WHOLE;
}

function toPieces(bytes: Uint8Array, from: number, to: number): void {
  pieces.fill(0);
  let whole = 0;
  while (from + whole < to && bytes[from + whole] !== POINT) whole += 1;
  const digits = whole + DECIMAL_SCALE;
  let used = 0;
  for (let at = 0; at < digits;) {
    const end = at + ((digits - at) % AT_ONCE || AT_ONCE);
    let value = 0;
    for (; at < end; at += 1) {
      const i = from + (at < whole ? at : at + 1);
      value = value * 10 + (i < to ? (bytes[i] as number) - ZERO : 0);
    }
    for (let i = 0; i < used; i += 1) {
      const piece = (pieces[i] as number) * POWER + value;
      pieces[i] = piece & 0xffff;
      value = piece >>> 16;
    }
    if (value === 0) continue;
    pieces[used] = value;
    used += 1;
  }
}

/** A JSON number as an integer of 10^-18, exact; further digits are rounded half away from zero, as warehouses round the same text. */
export function decimalOf(text: string): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = whole + fraction;
  /** Number of digits in the integer; the rest is rounded. */
  const kept = whole.length + Number(exponent) + DECIMAL_SCALE;
  let units: bigint;
  if (kept >= digits.length) units = BigInt(digits.padEnd(kept, '0'));
  else if (kept < 0) units = 0n;
  else units = BigInt(`0${digits.slice(0, kept)}`) + (digits.charAt(kept) >= '5' ? 1n : 0n);
  return sign === '-' ? -units : units;
}
