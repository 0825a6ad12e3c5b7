import { type Column, columnsOf, type TableDefinition } from '../../warehouse/definition.ts';
import type { RowTarget } from '../../warehouse/shape/row-target.ts';
import { ColumnValues, type GatheredValues } from './column-values.ts';

/** Rows of one table as columns: what becomes a row group. */
export class RowColumns implements RowTarget {
  readonly columns: readonly Column[];
  readonly #values: readonly ColumnValues[];
  /** Rows so far. */
  rows = 0;
  /** Bytes of their values as JSON, which is about what is held. */
  held = 0;

  constructor(definition: TableDefinition) {
    this.columns = columnsOf(definition);
    this.#values = this.columns.map((column) => new ColumnValues(column));
  }

  value(column: number, bytes: Uint8Array, from: number, to: number): void {
    this.held += Math.abs(to) - from;
    (this.#values[column] as ColumnValues).add(this.rows, bytes, from, to);
  }

  end(): void {
    this.rows += 1;
  }

  /** Takes buffers back that `take` gave away. */
  reuse(taken: readonly GatheredValues[]): void {
    for (const [at, values] of this.#values.entries()) values.reuse(taken[at]?.plain);
  }

  /** The columns so far; it begins anew with none. */
  take(): GatheredValues[] {
    const taken = this.#values.map((values) => values.take(this.rows));
    this.rows = 0;
    this.held = 0;
    return taken;
  }
}
