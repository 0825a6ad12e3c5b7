import { ByteWriter } from '../../lib/byte-writer.ts';
import { copy } from '../../lib/json-compact.ts';
import type { Column, ColumnType } from '../../tables/definition.ts';
import { DECIMAL_BYTES } from './decimal.ts';
import { Dictionary, doubled, LONGEST_ENTRY } from './dictionary.ts';
import { appendValue } from './physical.ts';

/** Pages have about this size; a reader decompresses each in one piece. */
export const PAGE = 1024 * 1024;
/** After so many values, and then after each so many more, a dictionary that is not worth it is given up. */
const FIRST_LOOK = 256;
const LOOK = 1024;
const LARGEST_DICTIONARY = PAGE;
const NOTHING: Uint8Array = new Uint8Array(0);

/** Bytes of a value, for types of fixed length; values of the others have their length before them. */
export const WIDTHS: Readonly<Partial<Record<ColumnType, number>>> = {
  integer: 8,
  decimal: DECIMAL_BYTES,
  boolean: 1,
  date: 4,
  timestamp: 8,
};

/** End of a page of plain values. */
export interface Cut {
  readonly rows: number;
  readonly values: number;
  readonly bytes: number;
}

/** Values of one column and row group. */
export interface GatheredValues {
  /** 1 for each row that has a value. */
  readonly present: Uint8Array;
  readonly count: number;
  /** The values; with `indexes` those of the dictionary. */
  readonly plain: Uint8Array;
  readonly indexes: Int32Array | null;
  readonly entries: number;
  /** Ends of the pages of `plain`, also of the last; not used with a dictionary. */
  readonly cuts: readonly Cut[];
}

/** Gathers the values of one column. Modes: dictionary → plain, when a dictionary is not worth it; `clear` begins again. */
export class ColumnValues {
  readonly column: Column;
  readonly #dictionary = new Dictionary();
  #isPlain: boolean;
  #present = new Uint8Array(1024);
  #count = 0;
  #values = new ByteWriter(1024);
  /** A large buffer that is used again, to save garbage collection. */
  #spare = new ByteWriter(0);
  #indexes = new Int32Array(256);
  #cuts: Cut[] = [];
  #pageFrom = 0;
  /** The last value, while there is a dictionary. */
  readonly #last = { bytes: NOTHING, from: 0, to: 0, index: 0 };

  constructor(column: Column) {
    this.column = column;
    this.#isPlain = column.type === 'boolean';
  }

  /**
   * Adds the value of a row, its text as JSON.
   * @param bytes do not change afterwards
   * @param row greater than that of the call before
   * @param to negative for a text with escapes and for JSON that is not canonical
   */
  add(row: number, bytes: Uint8Array, from: number, to: number): void {
    if (row >= this.#present.length) this.#growPresent(row);
    this.#present[row] = 1;
    if (this.#isPlain || !this.#addIndex(bytes, from, to)) this.#addPlain(row, bytes, from, to);
    this.#count += 1;
  }

  /** All values, in buffers that are valid until `clear`. */
  gathered(rows: number): GatheredValues {
    if (!this.#isPlain && this.#count > 0 && !this.#isWorthIt()) this.#toPlain();
    if (rows > this.#present.length) this.#growPresent(rows);
    const plain = this.#values.view();
    return {
      present: this.#present.subarray(0, rows),
      count: this.#count,
      plain,
      indexes: this.#isPlain || this.#count === 0 ? null : this.#indexes.subarray(0, this.#count),
      entries: this.#dictionary.size,
      cuts: [...this.#cuts, { rows, values: this.#count, bytes: plain.length }],
    };
  }

  clear(): void {
    this.#present.fill(0);
    this.#values.length = 0;
    this.#dictionary.clear();
    this.#last.bytes = NOTHING;
    this.#isPlain = this.column.type === 'boolean';
    this.#count = 0;
    this.#cuts = [];
    this.#pageFrom = 0;
  }

  /** Returns false when the dictionary was given up for this value. */
  #addIndex(bytes: Uint8Array, from: number, to: number): boolean {
    const end = Math.abs(to);
    const count = this.#count;
    const isLook = count === FIRST_LOOK || count % LOOK === LOOK - 1;
    if (end - from > LONGEST_ENTRY || (isLook && !this.#isWorthIt())) {
      this.#toPlain();
      return false;
    }
    const index = this.#indexOf(bytes, from, to);
    if (count === this.#indexes.length) this.#indexes = doubled(this.#indexes);
    this.#indexes[count] = index;
    return true;
  }

  #indexOf(bytes: Uint8Array, from: number, to: number): number {
    // Inherited values and those of an event are the same bytes in many rows.
    const last = this.#last;
    if (bytes === last.bytes && from === last.from && to === last.to) return last.index;
    const before = this.#dictionary.size;
    const index = this.#dictionary.find(bytes, from, Math.abs(to));
    if (index === before) appendValue(this.column.type, this.#values, bytes, from, to);
    last.bytes = bytes;
    last.from = from;
    last.to = to;
    last.index = index;
    return index;
  }

  #addPlain(row: number, bytes: Uint8Array, from: number, to: number): void {
    if (this.#values.length - this.#pageFrom >= PAGE) {
      this.#cuts.push({ rows: row, values: this.#count, bytes: this.#values.length });
      this.#pageFrom = this.#values.length;
    }
    appendValue(this.column.type, this.#values, bytes, from, to);
  }

  #isWorthIt(): boolean {
    return isWorthIt(this.#dictionary.size, this.#count, this.#values.length);
  }

  /** Replaces the dictionary by plain values. */
  #toPlain(): void {
    this.#isPlain = true;
    const entries = this.#values;
    const values = this.#spare;
    values.length = 0;
    const indexes = this.#indexes.subarray(0, this.#count);
    writeOut(this.column.type, entries.view(), this.#dictionary.size, indexes, values);
    this.#values = values;
    this.#spare = entries;
    this.#dictionary.clear();
  }

  #growPresent(rows: number): void {
    const length = Math.max(rows + 1, this.#present.length * 2);
    this.#present = new Uint8Array(this.#present.buffer.transfer(length));
  }
}

/** True when a dictionary is smaller. @param bytes of the different values */
export function isWorthIt(different: number, count: number, bytes: number): boolean {
  return different * 2 <= count && bytes <= LARGEST_DICTIONARY;
}

/** Adds the value of each index. */
export function writeOut(
  type: ColumnType,
  plain: Buffer,
  entries: number,
  indexes: Int32Array,
  out: ByteWriter,
): void {
  const starts = new Int32Array(entries + 1);
  for (let number = 0; number < entries; number += 1) {
    const start = starts[number] as number;
    starts[number + 1] = start + lengthAt(type, plain, start);
  }
  for (let at = 0; at < indexes.length; at += 1) {
    const index = indexes[at] as number;
    const [from, to] = [starts[index] as number, starts[index + 1] as number];
    out.room(to - from);
    out.length = copy(plain, from, to, out.buffer, out.length);
  }
}

/** Bytes of the value at `at`. */
export function lengthAt(type: ColumnType, plain: Buffer, at: number): number {
  return WIDTHS[type] ?? plain.readUInt32LE(at) + 4;
}
