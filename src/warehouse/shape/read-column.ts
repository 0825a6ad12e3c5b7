import { canonicalString } from '../../lib/json-compact.ts';
import { MINUS, QUOTE, skipJson, skipNumber, skipScalar, skipString } from '../../lib/json-text.ts';
import type { ColumnType } from '../definition.ts';
import { fitsDate, fitsDecimal, fitsInteger, fitsTimestamp } from './fit.ts';

/**
 * Steps over the value at `at` if a column of this type takes it. Returns the index after it, negated for a text with
 * escapes and JSON that is not canonical; 0 when the column does not take it, and then nothing is known of the value.
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
      return (type === 'decimal' ? fitsDecimal : fitsInteger)(bytes, at, end) ? end : 0;
    }
    case 'timestamp':
    case 'date': {
      if (bytes[at] !== QUOTE) return 0;
      const end = skipString(bytes, at);
      const fits = type === 'date' ? fitsDate : fitsTimestamp;
      if (end > 0) return fits(bytes, at, end) ? end : 0;
      const text = canonicalString(bytes, at, -end);
      return fits(text, 0, text.length) ? end : 0;
    }
    case 'boolean':
      return bytes[at] === 0x74 || bytes[at] === 0x66 ? skipScalar(bytes, at) : 0;
    case 'json':
      return skipJson(bytes, at, depth);
    default:
      return type satisfies never;
  }
}
