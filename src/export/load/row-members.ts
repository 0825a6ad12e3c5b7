import {
  beginsWith,
  CLOSE_BRACE,
  COMMA,
  JsonFault,
  LOWER_N,
  OPEN_BRACE,
  QUOTE,
  skipString,
  skipValue,
} from '../../lib/json-text.ts';
import { allColumnsOf, type TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';
import type { RowTarget } from '../../tables/shape/write-rows.ts';

/** Reads rows as the shaper writes them: members in the order of `columnsInRow`, those without a value left out. */
export class RowMembers {
  readonly #columns: readonly { readonly head: Buffer; readonly number: number; readonly isJson: boolean }[];
  /** The column that the last row had from each on: rows mostly have the same ones. */
  readonly #next: Uint16Array;
  /** Of each member of the row: its column's number, where its value begins, and where it ends. */
  readonly #found: Int32Array;

  constructor(definition: TableDefinition) {
    const all = allColumnsOf(definition);
    this.#columns = columnsInRow(definition, all).map((column) => ({
      head: Buffer.from(`${JSON.stringify(column.name)}:`),
      number: all.indexOf(column),
      isJson: column.type === 'json',
    }));
    this.#next = Uint16Array.from({ length: all.length + 1 }, (_, column) => column);
    this.#found = new Int32Array(all.length * 3);
  }

  /** Copies the row of a line. @returns why it is none; null when it was copied */
  copy(line: Buffer, rows: RowTarget): string | null {
    const found = this.#found;
    let at = 1;
    let end = 0;
    try {
      for (let from = 0; ;) {
        const column = this.#columnAt(line, at, from);
        const known = this.#columns[column];
        const value = at + (known?.head.length ?? 0);
        // A value that is missing is not written as null.
        if (known === undefined || line[value] === LOWER_N) break;
        const isText = line[value] === QUOTE && !known.isJson;
        const to = isText ? skipString(line, value) : skipValue(line, value, 1);
        found[end] = known.number;
        found[end + 1] = value;
        found[end + 2] = to;
        end += 3;
        at = Math.abs(to);
        if (line[at] === COMMA) at += 1;
        from = column + 1;
      }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      return error.message;
    }
    const isRow = line[0] === OPEN_BRACE && line[at] === CLOSE_BRACE && at + 1 === line.length;
    if (!isRow) return `${at} bytes into the line is no column of the table, or no next one`;
    for (let i = 0; i < end; i += 3)
      rows.value(found[i] as number, line, found[i + 1] as number, found[i + 2] as number);
    rows.end();
    return null;
  }

  /** The column of the member that begins at `at`, no earlier one than `from`; -1 for none. */
  #columnAt(line: Buffer, at: number, from: number): number {
    const columns = this.#columns;
    const likely = this.#next[from] as number;
    if (likely < columns.length && beginsWith(line, at, columns[likely]?.head ?? NOTHING)) return likely;
    for (let column = from; column < columns.length; column += 1) {
      if (!beginsWith(line, at, columns[column]?.head ?? NOTHING)) continue;
      this.#next[from] = column;
      return column;
    }
    return -1;
  }
}

const NOTHING = Buffer.alloc(0);
