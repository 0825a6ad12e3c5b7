import type { ColumnType } from '../../tables/definition.ts';
import { WIDTHS } from './column-values.ts';

interface Bounds {
  readonly min_value?: Uint8Array | bigint | number | boolean;
  readonly max_value?: Uint8Array | bigint | number | boolean;
}

/** Bytes of a text that are kept; the footer needs the first 16, and those of a character that is cut. */
const LONGEST_BOUND = 64;
/** First byte of U+10FFFF: the footer cannot find a shorter text that is greater. */
const HIGHEST = 0xf4;

/** Copies of the least and the greatest of values as Parquet stores them. */
export function boundsOf(type: ColumnType, plain: Buffer, count: number): Bounds {
  if (count === 0) return {};
  const width = WIDTHS[type] ?? null;
  let least = 0;
  let greatest = 0;
  for (let at = 0, i = 0; i < count; i += 1) {
    if (compare(width, plain, at, least) < 0) least = at;
    else if (compare(width, plain, at, greatest) > 0) greatest = at;
    at += width ?? plain.readUInt32LE(at) + 4;
  }
  return { min_value: valueAt(type, plain, least), max_value: valueAt(type, plain, greatest) };
}

function valueAt(type: ColumnType, plain: Buffer, at: number): Uint8Array | bigint | number | boolean {
  if (type === 'boolean') return plain[at] === 1;
  if (type === 'date') return plain.readInt32LE(at);
  if (type === 'text' || type === 'json') {
    const length = plain.readUInt32LE(at);
    const isKept = type === 'json' || plain[at + 4] === HIGHEST;
    return new Uint8Array(
      plain.subarray(at + 4, at + 4 + (isKept ? length : Math.min(length, LONGEST_BOUND))),
    );
  }
  return plain.readBigInt64LE(at);
}

function compare(width: number | null, plain: Buffer, a: number, b: number): number {
  if (width === null) return compareTexts(plain, a, b);
  // The last byte is the highest, and has the sign.
  const high = ((plain[a + width - 1] as number) ^ 0x80) - ((plain[b + width - 1] as number) ^ 0x80);
  if (high !== 0) return high;
  for (let i = width - 2; i >= 0; i -= 1) {
    const difference = (plain[a + i] as number) - (plain[b + i] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Compares bytes, which has the order of code points. */
function compareTexts(plain: Buffer, a: number, b: number): number {
  const [lengthA, lengthB] = [plain.readUInt32LE(a), plain.readUInt32LE(b)];
  const length = Math.min(lengthA, lengthB);
  for (let i = 4; i < length + 4; i += 1) {
    const difference = (plain[a + i] as number) - (plain[b + i] as number);
    if (difference !== 0) return difference;
  }
  return lengthA - lengthB;
}
