import type { SchemaElement } from 'hyparquet-writer';
import type { Column, ColumnType } from '../warehouse/definition.ts';
import { DECIMAL_SCALE, DECIMAL_WHOLE } from '../warehouse/fit.ts';

/** A value as the Parquet writer takes it; undefined is null. */
export type ParquetValue = string | bigint | number | boolean | Uint8Array | undefined;

const PRECISION = DECIMAL_WHOLE + DECIMAL_SCALE;
const DECIMAL_BYTES = 16;

/**
 * What each column type is in Parquet: the same types as the DDL of `millrace schema`. Times are microseconds in UTC;
 * decimals are exact, 38 digits with 18 behind the point.
 */
const ELEMENTS: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  integer: { type: 'INT64' },
  decimal: {
    type: 'FIXED_LEN_BYTE_ARRAY',
    type_length: DECIMAL_BYTES,
    precision: PRECISION,
    scale: DECIMAL_SCALE,
    logical_type: { type: 'DECIMAL', precision: PRECISION, scale: DECIMAL_SCALE },
  },
  boolean: { type: 'BOOLEAN' },
  date: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  timestamp: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  json: { type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } },
};

const CONVERTED: Readonly<Partial<Record<ColumnType, Pick<SchemaElement, 'converted_type'>>>> = {
  decimal: { converted_type: 'DECIMAL' },
  json: { converted_type: 'JSON' },
};

/** False for columns whose least and greatest value the writer would not find (decimals), or that say nothing (JSON). */
export function hasStatistics(type: ColumnType): boolean {
  return CONVERTED[type] === undefined;
}

/**
 * A file's schema: a flat row of the columns.
 * @param purpose readers know decimals and JSON by the older `converted_type` too, for which the writer would take the
 *   values apart once more; so it is in the footer's schema, and not in the one that values are written by
 */
export function schemaOf(columns: readonly Column[], purpose: 'values' | 'footer'): SchemaElement[] {
  const elements = columns.map(({ name, type, required }): SchemaElement => ({
    name,
    repetition_type: required === true ? 'REQUIRED' : 'OPTIONAL',
    ...ELEMENTS[type],
    ...(purpose === 'footer' ? CONVERTED[type] : {}),
  }));
  return [{ name: 'row', num_children: elements.length }, ...elements];
}

/** The value that stands at `from`, which fits its column: the shaper has seen to that. */
export function valueOf(type: ColumnType, bytes: Buffer, from: number, to: number): ParquetValue {
  switch (type) {
    case 'text':
      return textOf(bytes, from, to);
    case 'integer':
      return BigInt(bytes.toString('latin1', from, to));
    case 'decimal':
      return decimalBytes(bytes.toString('latin1', from, to));
    case 'boolean':
      return bytes[from] === 0x74;
    case 'date':
      return Date.parse(`${bytes.toString('latin1', from + 1, to - 1)}T00:00:00Z`) / 86_400_000;
    case 'timestamp':
      return microsOf(bytes.toString('latin1', from + 1, to - 1));
    case 'json':
      // A copy: the row's bytes are gone before the row group is written.
      return Uint8Array.prototype.slice.call(bytes, from, to);
    default:
      return type satisfies never;
  }
}

function textOf(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from + 1, to - 1);
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

/** Decimals worked out already: amounts repeat, and BigInts are slow. */
const known = new Map<string, Uint8Array>();
const KNOWN = 10_000;

/** The big-endian two's complement of the units. */
function decimalBytes(text: string): Uint8Array {
  const before = known.get(text);
  if (before !== undefined) return before;
  const units = decimalOf(text);
  const bytes = Buffer.alloc(DECIMAL_BYTES);
  bytes.writeBigInt64BE(units >> 64n, 0);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, units), 8);
  if (known.size >= KNOWN) known.clear();
  known.set(text, bytes);
  return bytes;
}

/**
 * A JSON number as whole units of 10^-18, exact; digits beyond are rounded, half away from zero, as a warehouse rounds
 * when it loads the same text.
 */
export function decimalOf(text: string): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = whole + fraction;
  /** Digits that stand in front of the unit; the rest is to be rounded. */
  const kept = whole.length + Number(exponent) + DECIMAL_SCALE;
  let units: bigint;
  if (kept >= digits.length) units = BigInt(digits.padEnd(kept, '0'));
  else if (kept < 0) units = 0n;
  else units = BigInt(`0${digits.slice(0, kept)}`) + (digits.charAt(kept) >= '5' ? 1n : 0n);
  return sign === '-' ? -units : units;
}

/** Microseconds since the epoch of what `fitsTimestamp` takes; without an offset it is UTC. */
export function microsOf(text: string): bigint {
  const [, day = '', time = '00:00:00', fraction = '', offset = 'Z'] =
    /^(.{10})(?:[T ](.{8})(?:\.(\d+))?(Z|[+-].{5})?)?$/.exec(text) ?? [];
  const seconds = Date.parse(`${day}T${time}${offset}`) / 1000;
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(6, '0'));
}
