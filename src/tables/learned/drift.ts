import { visible } from '../../lib/visible.ts';
import type { Column, ColumnType, TableDefinition } from '../definition.ts';
import { type ExtraField, FieldSums, type TableFields } from './field-sums.ts';

/** A line for the log about a field that goes to `extra`. */
export function describeExtraField(table: string, path: string, type: ExtraField['type']): string {
  return type === null
    ? `${table}: ${path} has no column; it is in extra`
    : `${table}: a value of ${path} is ${isFrame(type) ? FRAME : `not valid for its column (${type})`}; it is in extra`;
}

const FRAME = 'not of the shape in which its rows or columns are read';

/** A column of JSON takes every value, so this is an object or array that has columns or rows inside. */
function isFrame(type: ColumnType): boolean {
  return type === 'json';
}

/** Differences between documents and the definition of their table. */
export interface TableDrift {
  readonly table: string;
  readonly rows: number;
  /** Fields without a column. They are in `extra`. */
  readonly new: readonly { readonly path: string; readonly count: number }[];
  /** Fields with values that their column does not take. These are in `extra`. */
  readonly changed: readonly {
    readonly path: string;
    readonly type: ColumnType;
    readonly found: Readonly<Record<string, number>>;
  }[];
  /** Columns that had no value, and had one in this share of earlier rows. */
  readonly gone: readonly { readonly column: string; readonly share: number }[];
  /** Entries that are left out of these lists. */
  readonly more: number;
}

/** Entries of each list. */
const MOST = 50;
/** Rows that must be expected to have a value before a column without one is reported. */
const EXPECTED = 10;

/** What rows had over several parts of a run, and how that differs from their definitions. */
export class Drift extends FieldSums {
  /**
   * The tables whose documents have changed.
   * @param earlier rows of earlier runs; without them, the shares of learned columns are compared
   */
  report(
    definitionOf: (table: string) => TableDefinition | undefined,
    earlier = new FieldSums(),
  ): TableDrift[] {
    return this.all().flatMap(({ table, rows, filled, extra }) => {
      const definition = definitionOf(table);
      if (definition === undefined) return [];
      const fields = extra.toSorted((a, b) => countOf(b) - countOf(a));
      const added = fields.filter(({ type }) => type === null);
      const changed = fields.flatMap(({ path, type, found }) =>
        type === null ? [] : [{ path, type, found }],
      );
      const gone = goneOf(definition, rows, filled, earlier.get(table)).filter(
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
  earlier: Pick<TableFields, 'rows' | 'filled'> | undefined,
): { column: string; from: Column['from']; share: number }[] {
  return columns.flatMap(({ name, from, share: learned }) => {
    // Of the columns that read the document.
    if (typeof from !== 'string' || from === '') return [];
    const share =
      earlier === undefined || earlier.rows === 0
        ? (learned ?? 0)
        : (earlier.filled.get(name) ?? 0) / earlier.rows;
    if ((filled.get(name) ?? 0) > 0 || share * rows < EXPECTED) return [];
    return [{ column: name, from, share: Math.round(share * 1000) / 1000 }];
  });
}

function countOf({ found }: ExtraField): number {
  return Object.values(found).reduce((sum, count) => sum + count, 0);
}

/** Names of each kind in a line. */
const NAMED = 10;

/** A line for the log about one table. */
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
