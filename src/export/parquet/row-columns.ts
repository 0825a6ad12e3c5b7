import type { Column } from '../../tables/definition.ts';
import type { RowTarget } from '../../tables/shape/write-rows.ts';
import { ColumnValues, type GatheredValues } from './column-values.ts';

/** Rows as columns, for a row group. */
export class RowColumns implements RowTarget {
  readonly columns: readonly Column[];
  readonly #values: readonly (ColumnValues | null)[];
  /** Of each column, the index in `#values` of its values. */
  readonly #from: readonly number[];
  rows = 0;
  /** Bytes of their values as JSON, about as many as in memory. */
  held = 0;

  /**
   * @param all columns that rows may have
   * @param wanted those of them that are gathered
   * @param twins by column of all, the first with the same values, which are kept once
   */
  constructor(all: readonly Column[], wanted = all, twins?: readonly number[]) {
    this.columns = wanted;
    this.#from = wanted.map((column) => twins?.[all.indexOf(column)] ?? all.indexOf(column));
    const needed = new Set(this.#from);
    this.#values = all.map((column, at) => (needed.has(at) ? new ColumnValues(column) : null));
  }

  value(column: number, bytes: Uint8Array, from: number, to: number): void {
    const values = this.#values[column] as ColumnValues | null;
    if (values === null) return;
    this.held += Math.abs(to) - from;
    values.add(this.rows, bytes, from, to);
  }

  end(): void {
    this.rows += 1;
  }

  /** The columns so far, in buffers that are valid until `clear`; twins are the same object. */
  gathered(): GatheredValues[] {
    const own = this.#values.map((values) => values?.gathered(this.rows));
    return this.#from.map((at) => own[at] as GatheredValues);
  }

  clear(): void {
    for (const values of this.#values) values?.clear();
    this.rows = 0;
    this.held = 0;
  }
}
