import type { ColumnType } from '../definition.ts';

/** A field that no column took. */
export interface LeftField {
  readonly table: string;
  /** In the row's document. */
  readonly path: string;
  /** Of the column that reads the field and whose type its value did not fit; null when there is none. */
  readonly type: ColumnType | null;
  /** How often it was what: text, number, boolean, object, array, null. */
  readonly found: Record<string, number>;
}

/** What rows of a table had. */
export interface TableFields {
  readonly table: string;
  readonly rows: number;
  /** Rows in which a column had a value of the document. */
  readonly filled: ReadonlyMap<string, number>;
  readonly left: readonly LeftField[];
}

/** Fields of one table that are remembered. */
const MOST_FIELDS = 1000;

/** Adds up what rows had that were made apart. */
export class FieldSums {
  readonly #tables = new Map<
    string,
    { rows: number; filled: Map<string, number>; left: Map<string, LeftField> }
  >();

  add({ table, rows, filled, left }: TableFields): void {
    const sums = this.#tables.get(table) ?? { rows: 0, filled: new Map(), left: new Map() };
    this.#tables.set(table, sums);
    sums.rows += rows;
    for (const [column, count] of filled) sums.filled.set(column, (sums.filled.get(column) ?? 0) + count);
    for (const field of left) {
      const known = sums.left.get(field.path);
      if (known === undefined) {
        if (sums.left.size < MOST_FIELDS) sums.left.set(field.path, { ...field, found: { ...field.found } });
      } else
        for (const [kind, count] of Object.entries(field.found))
          known.found[kind] = (known.found[kind] ?? 0) + count;
    }
  }

  all(): TableFields[] {
    return [...this.#tables].map(([table, { rows, filled, left }]) => ({
      table,
      rows,
      filled,
      left: [...left.values()],
    }));
  }
}
