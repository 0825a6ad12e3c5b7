import { CLOSE_BRACE, QUOTE, skipString, skipValue } from '../lib/json-text.ts';
import { type Column, columnsOf, type TableDefinition } from '../warehouse/definition.ts';
import { ColumnValues, type GatheredValues } from './column-values.ts';

const LINE_FEED = 10;

/** Rows of one table, turned into columns: the shape of a row group. */
export class RowColumns {
  readonly columns: readonly Column[];
  readonly #keys: readonly Uint8Array[];
  readonly #values: readonly ColumnValues[];
  /** Rows so far. */
  rows = 0;

  constructor(definition: TableDefinition) {
    this.columns = columnsOf(definition);
    this.#keys = this.columns.map(({ name }) => Buffer.from(`${JSON.stringify(name)}:`));
    this.#values = this.columns.map((column) => new ColumnValues(column));
  }

  /** Bytes of values that wait to be written. */
  get held(): number {
    return this.#values.reduce((held, values) => held + values.held, 0);
  }

  /**
   * Adds rows as the shaper writes them: whole lines, each a compact object of some of the columns.
   * @param bytes may be reused afterwards
   */
  add(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at = this.#row(bytes, at);
  }

  /** The columns so far; it begins anew with none. */
  take(): GatheredValues[] {
    const taken = this.#values.map((values) => values.take(this.rows));
    this.rows = 0;
    return taken;
  }

  /** Returns the index after the row and its line feed. */
  #row(bytes: Buffer, start: number): number {
    let i = start + 1;
    let column = 0;
    while (bytes[i] !== CLOSE_BRACE) {
      // Most often in the table's order; what a row inherits stands in front.
      while (column < this.#keys.length && !this.#isKey(column, bytes, i)) column += 1;
      if (column === this.#keys.length) column = this.#keys.findIndex((_, at) => this.#isKey(at, bytes, i));
      const values = this.#values[column];
      if (values === undefined) throw new Error('a row has a column that its table has not');
      const from = i + (this.#keys[column] as Uint8Array).length;
      const to = bytes[from] === QUOTE ? skipString(bytes, from) : skipValue(bytes, from, 1);
      values.add(this.rows, bytes, from, to);
      const end = Math.abs(to);
      i = bytes[end] === CLOSE_BRACE ? end : end + 1;
    }
    this.rows += 1;
    if (bytes[i + 1] !== LINE_FEED) throw new Error('a row does not end where its line does');
    return i + 2;
  }

  #isKey(column: number, bytes: Uint8Array, at: number): boolean {
    const key = this.#keys[column] as Uint8Array;
    for (let i = 0; i < key.length; i += 1) if (bytes[at + i] !== key[i]) return false;
    return true;
  }
}
