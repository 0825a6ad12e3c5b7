import { instantText, wholeNumber } from './plain-value.ts';
import { instantOf, usualTime } from './time.ts';
import { canonicalString } from '../../lib/json-compact.ts';
import { MINUS, QUOTE, skipJson, skipNumber, skipScalar, skipString } from '../../lib/json-text.ts';
import type { ColumnType } from '../definition.ts';

/**
 * Which values each column type takes, in every dialect. A warehouse that refuses one row can refuse its whole file, so values
 * that a column does not take go to `extra`.
 */

/** Digits that a decimal column (DECIMAL(38, 18)) has in front of the point, and behind it. */
export const DECIMAL_WHOLE = 20;
export const DECIMAL_SCALE = 18;

/** Numbers of at most this length are valid if they have no exponent. */
const SHORT = 18;
/** Characters of the longest number that every warehouse reads, and the largest exponent of a zero. */
const LONGEST_DECIMAL = 200;
const LARGEST_EXPONENT = 99;
/** The least number with too many digits in front of the point. Numbers that round to it have too many as well. */
const TOO_LARGE = 10 ** DECIMAL_WHOLE;
/** Sign and digits of the longest integer of 64 bits. */
const LONGEST_INTEGER = 20;

/** True for a signed integer of 64 bits without point and exponent; `wholeNumber` reads others. */
function isInteger(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i += 1) {
    const c = bytes[i] as number;
    if (c !== 0x2d && (c < 0x30 || c > 0x39)) return false;
  }
  if (to - from <= SHORT) return true;
  if (to - from > LONGEST_INTEGER) return false;
  const value = BigInt(latin1(bytes, from, to));
  return BigInt.asIntN(64, value) === value;
}

/** False for a number that is too large for a decimal column, or would become 0 there. Warehouses round to the column's scale. */
function isDecimal(bytes: Uint8Array, from: number, to: number): boolean {
  let plain = to - from <= SHORT;
  for (let i = from; i < to && plain; i += 1) plain = ((bytes[i] as number) | 0x20) !== 0x65;
  return plain || isLongDecimal(latin1(bytes, from, to));
}

function isLongDecimal(text: string): boolean {
  if (text.length > LONGEST_DECIMAL) return false;
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = whole + fraction;
  const zeros = /^0*/.exec(digits)?.[0].length ?? 0;
  if (zeros === digits.length) return Math.abs(Number(exponent)) <= LARGEST_EXPONENT;
  /** Power of ten of the first digit that is not 0. */
  const magnitude = Number(exponent) + whole.length - 1 - zeros;
  return Math.abs(Number(text)) < TOO_LARGE && magnitude >= -DECIMAL_SCALE;
}

/** True for `"YYYY-MM-DD"`, quotes included, of a day that exists. */
function isDate(bytes: Uint8Array, from: number, to: number): boolean {
  return to - from === 12 && isDay(bytes, from + 1);
}

/**
 * True for an ISO 8601 date-time in quotes: seconds and a fraction may be there (`copyTime` cuts digits beyond microseconds),
 * and `Z` or an offset (`+02:00`, `+0200`, `+02`); without either it is UTC. A date alone is one too. Its instant is in the
 * years 1 to 9999 of UTC, because some readers stop at any other.
 */
export function isTimestamp(bytes: Uint8Array, from: number, to: number): boolean {
  if (!isDay(bytes, from + 1)) return false;
  const end = to - 1;
  let i = from + 11;
  if (i === end) return true;
  const separator = bytes[i] as number;
  if (separator !== 0x54 && separator !== 0x20 && separator !== 0x74) return false;
  if (!isBelow(bytes, i + 1, 24) || bytes[i + 3] !== 0x3a || !isBelow(bytes, i + 4, 60)) return false;
  i += 6;
  if (bytes[i] === 0x3a) {
    if (!isBelow(bytes, i + 1, 60)) return false;
    i += 3;
    if (bytes[i] === 0x2e) {
      const first = i + 1;
      i = first;
      while (isDigit(bytes[i] as number)) i += 1;
      if (i === first) return false;
    }
  }
  return i === end || (isZone(bytes, i, end) && isInYears(bytes, from + 1, end));
}

/** The first second of year 1 and the last of year 9999, since the epoch. */
const FIRST = -62_135_596_800;
const LAST = 253_402_300_799;

function isInYears(bytes: Uint8Array, from: number, end: number): boolean {
  const year = twoDigits(bytes, from) * 100 + twoDigits(bytes, from + 2);
  if (year > 1 && year < 9999) return true;
  const { seconds } = instantOf(bytes, from, end);
  return seconds >= FIRST && seconds <= LAST;
}

function isZone(bytes: Uint8Array, at: number, end: number): boolean {
  const c = bytes[at] as number;
  if (c === 0x5a || c === 0x7a) return at + 1 === end;
  if ((c !== 0x2b && c !== 0x2d) || !isBelow(bytes, at + 1, 15)) return false;
  const minutes = bytes[at + 3] === 0x3a ? at + 4 : at + 3;
  return end === at + 3 || (end === minutes + 2 && isBelow(bytes, minutes, 60));
}

const DAYS = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** `YYYY-MM-DD` at `at`, from year 1 on. */
function isDay(bytes: Uint8Array, at: number): boolean {
  const year = twoDigits(bytes, at) * 100 + twoDigits(bytes, at + 2);
  const month = twoDigits(bytes, at + 5);
  const day = twoDigits(bytes, at + 8);
  if (!(year >= 1) || bytes[at + 4] !== 0x2d || bytes[at + 7] !== 0x2d) return false;
  if (!(month >= 1 && month <= 12) || !(day >= 1 && day <= (DAYS[month] as number))) return false;
  return month !== 2 || day < 29 || (year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0));
}

function isBelow(bytes: Uint8Array, at: number, limit: number): boolean {
  return twoDigits(bytes, at) < limit;
}

/** NaN when there are not two digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at] as number;
  const ones = bytes[at + 1] as number;
  return isDigit(tens) && isDigit(ones) ? (tens - 0x30) * 10 + ones - 0x30 : Number.NaN;
}

function isDigit(c: number): boolean {
  return c >= 0x30 && c <= 0x39;
}

export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1');
}

/**
 * Steps over the value at `at` if a column of this type takes it.
 * @returns the index after it, negative for a text with escapes, for JSON that is not canonical, and for a number or a time that
 *   rows write in another form; 0 when the column does not take it: then it may not even be JSON
 * @throws JsonFault
 */
export function readColumn(type: ColumnType, bytes: Uint8Array, at: number, depth: number): number {
  switch (type) {
    case 'text':
      return bytes[at] === QUOTE ? skipString(bytes, at) : 0;
    case 'integer':
    case 'decimal': {
      const c = bytes[at] as number;
      if (c !== MINUS && !(c >= 0x30 && c <= 0x39)) return 0;
      const end = skipNumber(bytes, at);
      if (type === 'decimal') return isDecimal(bytes, at, end) ? end : 0;
      if (isInteger(bytes, at, end)) return end;
      return wholeNumber(latin1(bytes, at, end)) === null ? 0 : -end;
    }
    case 'timestamp':
    case 'date': {
      if (bytes[at] !== QUOTE) return 0;
      const end = skipString(bytes, at);
      const isValid = type === 'date' ? isDate : isTimestamp;
      if (end > 0 && isValid(bytes, at, end)) return end;
      const text = end > 0 ? bytes.subarray(at, end) : canonicalString(bytes, at, -end);
      if (end < 0 && isValid(text, 0, text.length)) return end;
      const isOther = type === 'timestamp' && instantText(latin1(text, 1, text.length - 1)) !== null;
      return isOther ? -Math.abs(end) : 0;
    }
    case 'boolean':
      return bytes[at] === 0x74 || bytes[at] === 0x66 ? skipScalar(bytes, at) : 0;
    case 'json':
      return skipJson(bytes, at, depth);
    default:
      return type satisfies never;
  }
}

/** The form in which rows have a value that `readColumn` has taken with a negative end. */
export function plainValue(type: ColumnType, bytes: Uint8Array, from: number, to: number): Uint8Array {
  if (type === 'integer') return Buffer.from(wholeNumber(latin1(bytes, from, to)) ?? '');
  const text = canonicalString(bytes, from, to);
  if (type !== 'timestamp') return text;
  if (isTimestamp(text, 0, text.length)) return usualTime(text);
  return Buffer.from(`"${instantText(latin1(text, 1, text.length - 1)) ?? ''}"`);
}
