import type { ByteWriter } from '../../lib/byte-writer.ts';
import { canonicalString, copy, copyJson } from '../../lib/json-compact.ts';
import { MINUS, ZERO } from '../../lib/json-text.ts';
import type { ColumnType } from '../../tables/definition.ts';
import { latin1 } from '../../tables/shape/column-types.ts';
import { dayOf, instantOf } from '../../tables/shape/time.ts';
import { appendDecimal } from './decimal.ts';

const TRUE = 0x74;
const TWO_32 = 2 ** 32;
/** Integers of at most so many digits are exact as a double. */
const EXACT_DIGITS = 15;
/** Microseconds of fewer seconds are exact as a double. */
const EXACT_SECONDS = 9e9;

/**
 * Adds a value as Parquet stores it (PLAIN): byte arrays after their length, numbers little-endian, decimals big-endian. The shaper
 * has checked that it is valid for its column.
 * @param to negative when the value is a text with escapes, or JSON that is not canonical
 */
export function appendValue(
  type: ColumnType,
  out: ByteWriter,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  if (to < 0 && type !== 'json') return appendEscaped(type, out, bytes, from, to);
  out.room((Math.abs(to) - from) * 2 + 16);
  switch (type) {
    case 'text': {
      int32At(out.buffer, out.length, to - from - 2);
      out.length = copy(bytes, from + 1, to - 1, out.buffer, out.length + 4);
      return;
    }
    case 'json': {
      const end = copyJson(bytes, from, to, out.buffer, out.length + 4);
      int32At(out.buffer, out.length, end - out.length - 4);
      out.length = end;
      return;
    }
    case 'integer':
      return appendInteger(out, bytes, from, to);
    case 'decimal':
      return appendDecimal(out, bytes, from, to);
    case 'boolean':
      out.buffer[out.length] = bytes[from] === TRUE ? 1 : 0;
      out.length += 1;
      return;
    case 'date':
      int32At(out.buffer, out.length, dayOf(bytes, from + 1));
      out.length += 4;
      return;
    case 'timestamp':
      return appendTime(out, bytes, from + 1, to - 1);
    default:
      return type satisfies never;
  }
}

/** Adds a text, date or time with escapes. A canonical date or time has none left. */
function appendEscaped(type: ColumnType, out: ByteWriter, bytes: Uint8Array, from: number, to: number): void {
  const canonical = canonicalString(bytes, from, -to);
  if (type !== 'text') return appendValue(type, out, canonical, 0, canonical.length);
  const text = JSON.parse(canonical.toString()) as string;
  out.room(canonical.length + 4);
  const length = out.buffer.write(text, out.length + 4, 'utf8');
  int32At(out.buffer, out.length, length);
  out.length += length + 4;
}

function appendInteger(out: ByteWriter, bytes: Uint8Array, from: number, to: number): void {
  if (to - from > EXACT_DIGITS) return appendBigInt(out, BigInt(latin1(bytes, from, to)));
  const negative = bytes[from] === MINUS;
  let value = 0;
  for (let i = negative ? from + 1 : from; i < to; i += 1) value = value * 10 + (bytes[i] as number) - ZERO;
  appendInt64(out, negative ? -value : value);
}

/** Microseconds since the epoch. */
function appendTime(out: ByteWriter, bytes: Uint8Array, from: number, to: number): void {
  const { seconds, micros } = instantOf(bytes, from, to);
  if (Math.abs(seconds) < EXACT_SECONDS) appendInt64(out, seconds * 1_000_000 + micros);
  else appendBigInt(out, BigInt(seconds) * 1_000_000n + BigInt(micros));
}

/** @param value an integer that is exact as a double */
function appendInt64(out: ByteWriter, value: number): void {
  const high = Math.floor(value / TWO_32);
  int32At(out.buffer, out.length, (value - high * TWO_32) | 0);
  int32At(out.buffer, out.length + 4, high);
  out.length += 8;
}

function appendBigInt(out: ByteWriter, value: bigint): void {
  out.length = out.buffer.writeBigInt64LE(value, out.length);
}

/** Writes little-endian; `writeInt32LE` would check what is known here. */
function int32At(buffer: Uint8Array, at: number, value: number): void {
  buffer[at] = value;
  buffer[at + 1] = value >> 8;
  buffer[at + 2] = value >> 16;
  buffer[at + 3] = value >> 24;
}
