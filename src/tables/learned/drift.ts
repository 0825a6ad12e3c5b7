import { visible } from '../../lib/visible.ts';
import type { Column, ColumnType, TableDefinition } from '../definition.ts';
import { type ExtraField, FieldSums, type TableFields } from './field-sums.ts';

/** One line for a reader, when it is first met. */
export function describeLeft(table: string, path: string, type: ExtraField['type']): string {
  return type === null
    ? `${table}: ${path} has no column; it is in extra`
    : `${table}: a value of ${path} does not fit ${isFrame(type) ? FRAME : `its column (${type})`}; it is in extra`;
}

const FRAME = 'the shape in which its rows or columns are read';

/** A column of JSON takes every value: what does not fit is to have columns, or rows, inside. */
function isFrame(type: ColumnType): boolean {
  return type === 'json';
}

/** How documents differ from what their table was made for. */
export interface TableDrift {
  readonly table: string;
  readonly rows: number;
  /** Fields without a column; they are in `extra`. */
  readonly new: readonly { readonly path: string; readonly count: number }[];
  /** Fields with values that do not fit their column; these are in `extra`. */
  readonly changed: readonly {
    readonly path: string;
    readonly type: ColumnType;
    readonly found: Readonly<Record<string, number>>;
  }[];
  /** Columns that were to be expected, and had no value; `share` is the part of the rows that had one before. */
  readonly gone: readonly { readonly column: string; readonly share: number }[];
  /** What is left out of these lists. */
  readonly more: number;
}

/** Entries of each list. */
const MOST = 50;
/** Rows with a value that must have been expected before it is said that there are none. */
const EXPECTED = 10;

/** What rows had that were made earlier. */
export interface Earlier {
  readonly rows: number;
  readonly filled: ReadonlyMap<string, number>;
}

/** Gathers what rows had over several parts of a run, and says what has drifted. */
export class Drift {
  readonly #sums = new FieldSums();

  add(fields: TableFields): void {
    this.#sums.add(fields);
  }

  /**
   * The tables that have drifted.
   * @param earlier rows of a table that were made before; else it is told by what was counted when it was learned
   */
  report(
    definitionOf: (table: string) => TableDefinition | undefined,
    earlier: (table: string) => Earlier | undefined = () => undefined,
  ): TableDrift[] {
    return this.#sums.all().flatMap(({ table, rows, filled, extra }) => {
      const definition = definitionOf(table);
      if (definition === undefined) return [];
      const fields = extra.toSorted((a, b) => countOf(b) - countOf(a));
      const added = fields.filter(({ type }) => type === null);
      const changed = fields.flatMap(({ path, type, found }) =>
        type === null ? [] : [{ path, type, found }],
      );
      const gone = goneOf(definition, rows, filled, earlier(table)).filter(
        ({ from }) => !changed.some(({ path }) => path === from),
      );
      const lists = [added, changed, gone];
      if (lists.every(({ length }) => length === 0)) return [];
      return [
        {
          table,
          rows,
          new: added.slice(0, MOST).map((field) => ({ path: field.path, count: countOf(field) })),
          changed: changed.slice(0, MOST),
          gone: gone.slice(0, MOST).map(({ column, share }) => ({ column, share })),
          more: lists.reduce((sum, { length }) => sum + Math.max(length - MOST, 0), 0),
        },
      ];
    });
  }
}

function goneOf(
  { columns }: TableDefinition,
  rows: number,
  filled: ReadonlyMap<string, number>,
  earlier: Earlier | undefined,
): { column: string; from: Column['from']; share: number }[] {
  return columns.filter(isRead).flatMap(({ name, from, share: learned }) => {
    const share =
      earlier === undefined || earlier.rows === 0
        ? (learned ?? 0)
        : (earlier.filled.get(name) ?? 0) / earlier.rows;
    if ((filled.get(name) ?? 0) > 0 || share * rows < EXPECTED) return [];
    return [{ column: name, from, share: Math.round(share * 1000) / 1000 }];
  });
}

/** True for a column that reads a place of the document. */
function isRead({ from }: Column): boolean {
  return typeof from === 'string' && from !== '';
}

function countOf({ found }: ExtraField): number {
  return Object.values(found).reduce((sum, count) => sum + count, 0);
}

/** Named in a line, of each kind. */
const NAMED = 10;

/** One line for a reader. */
export function describeDrift({ table, rows, new: added, changed, gone, more }: TableDrift): string {
  const parts = [
    listed(
      'new fields, in extra',
      added.map(({ path, count }) => `${path} (${count})`),
    ),
    listed(
      'values of another type, in extra',
      changed.map(({ path, type, found }) => {
        const kinds = Object.entries(found).map(([kind, count]) => `${count} ${kind}`);
        return `${path} (${kinds.join(', ')}; ${isFrame(type) ? 'read in another shape' : `the column is ${type}`})`;
      }),
    ),
    listed(
      'no longer there',
      gone.map(({ column, share }) => `${column} (was in ${Math.max(Math.round(share * 100), 1)} %)`),
    ),
  ].filter((part) => part !== '');
  if (more > 0) parts.push(`and ${more} more`);
  return visible(`drift in ${table}, ${rows} rows: ${parts.join('; ')}`);
}

function listed(title: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const rest = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${title}: ${names.slice(0, NAMED).join(', ')}${rest}`;
}
