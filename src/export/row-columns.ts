import { CLOSE_BRACE, skipValue } from '../lib/json-text.ts';
import { type Column, columnsOf, type TableDefinition } from '../warehouse/definition.ts';
import { type ParquetValue, valueOf } from './values.ts';

const LINE_FEED = 10;

/** Rows of one table, turned into columns: the shape of a row group. */
export class RowColumns {
  readonly columns: readonly Column[];
  readonly #index: ReadonlyMap<string, number>;
  #data: ParquetValue[][];
  /** Rows so far. */
  rows = 0;

  constructor(definition: TableDefinition) {
    this.columns = columnsOf(definition);
    this.#index = new Map(this.columns.map(({ name }, at) => [name, at]));
    this.#data = this.columns.map(() => []);
  }

  /**
   * Adds rows as the shaper writes them: whole lines, each a compact object of some of the columns.
   * @param bytes may be reused afterwards
   */
  add(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at = this.#row(bytes, at);
  }

  /** The columns so far; it begins anew with none. */
  take(): ParquetValue[][] {
    const data = this.#data;
    this.#data = this.columns.map(() => []);
    this.rows = 0;
    return data;
  }

  /** Returns the index after the row and its line feed. */
  #row(bytes: Buffer, start: number): number {
    const row = this.rows;
    this.rows += 1;
    for (const column of this.#data) column.push(undefined);
    let i = start + 1;
    while (bytes[i] !== CLOSE_BRACE) {
      const keyEnd = bytes.indexOf(0x22, i + 1);
      const at = this.#index.get(bytes.toString('latin1', i + 1, keyEnd)) ?? -1;
      const from = keyEnd + 2;
      const to = skipValue(bytes, from, 1);
      const column = this.columns[at];
      const data = this.#data[at];
      if (column === undefined || data === undefined)
        throw new Error('a row has a column that its table has not');
      data[row] = valueOf(column.type, bytes, from, to);
      i = bytes[to] === CLOSE_BRACE ? to : to + 1;
    }
    if (bytes[i + 1] !== LINE_FEED) throw new Error('a row does not end where its line does');
    return i + 2;
  }
}
