import type { ColumnType } from '../definition.ts';

/** A field with values that went to `extra`. */
export interface ExtraField {
  readonly table: string;
  /** In the row's document. */
  readonly path: string;
  /** Of the column that reads the field and did not take its value; null when there is no column. */
  readonly type: ColumnType | null;
  /** Number of values by kind: text, number, boolean, object, array, null. */
  readonly found: Record<string, number>;
}

/** Called with an `ExtraField` when it is first seen. */
export type OnExtraField = (table: string, path: string, type: ColumnType | null) => void;

/** What the rows of a table had. */
export interface TableFields {
  readonly table: string;
  readonly rows: number;
  /** By column, the rows in which it had a value of the document. */
  readonly filled: ReadonlyMap<string, number>;
  readonly extra: readonly ExtraField[];
}

/** Extra fields that are remembered of one table. */
const MOST_FIELDS = 1000;

/** Adds up what rows had that were shaped by several shapers. */
export class FieldSums {
  readonly #tables = new Map<
    string,
    { rows: number; filled: Map<string, number>; extra: Map<string, ExtraField> }
  >();

  add({ table, rows, filled, extra }: TableFields): void {
    const sums = this.#tables.get(table) ?? { rows: 0, filled: new Map(), extra: new Map() };
    this.#tables.set(table, sums);
    sums.rows += rows;
    for (const [column, count] of filled) sums.filled.set(column, (sums.filled.get(column) ?? 0) + count);
    for (const field of extra) {
      const known = sums.extra.get(field.path);
      if (known === undefined) {
        if (sums.extra.size < MOST_FIELDS)
          sums.extra.set(field.path, { ...field, found: { ...field.found } });
      } else
        for (const [kind, count] of Object.entries(field.found))
          known.found[kind] = (known.found[kind] ?? 0) + count;
    }
  }

  get(table: string): Pick<TableFields, 'rows' | 'filled'> | undefined {
    return this.#tables.get(table);
  }

  all(): TableFields[] {
    return [...this.#tables].map(([table, { rows, filled, extra }]) => ({
      table,
      rows,
      filled,
      extra: [...extra.values()],
    }));
  }
}
