import type { Column } from '../warehouse/definition.ts';
import type { RowTarget } from '../warehouse/shape/row-target.ts';
import { ColumnValues, type GatheredValues } from './column-values.ts';

/** Rows as columns: what becomes a row group. */
export class RowColumns implements RowTarget {
  readonly columns: readonly Column[];
  readonly #values: readonly ColumnValues[];
  /** Rows so far. */
  rows = 0;
  /** Bytes of their values as JSON, which is about what is held. */
  held = 0;

  constructor(columns: readonly Column[]) {
    this.columns = columns;
    this.#values = columns.map((column) => new ColumnValues(column));
  }

  value(column: number, bytes: Uint8Array, from: number, to: number): void {
    this.held += Math.abs(to) - from;
    (this.#values[column] as ColumnValues).add(this.rows, bytes, from, to);
  }

  end(): void {
    this.rows += 1;
  }

  /** The columns so far, in buffers that hold them until `clear`. */
  gathered(): GatheredValues[] {
    return this.#values.map((values) => values.gathered(this.rows));
  }

  /** Begins anew with no rows. */
  clear(): void {
    for (const values of this.#values) values.clear();
    this.rows = 0;
    this.held = 0;
  }
}
