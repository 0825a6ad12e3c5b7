import { beginsWith } from '../../lib/json-text.ts';
import type { Column } from '../../tables/definition.ts';

/** Finds the members of rows as the shaper writes them: in the order of `columnsInRow`, those without a value left out. */
export class RowMembers {
  readonly #heads: readonly Buffer[];
  /** The column that the last row had from each on: rows mostly have the same ones. */
  readonly #next: Uint16Array;

  constructor(columns: readonly Column[]) {
    this.#heads = columns.map(({ name }) => Buffer.from(`${JSON.stringify(name)}:`));
    this.#next = Uint16Array.from({ length: columns.length + 1 }, (_, column) => column);
  }

  /** The column of the member that begins at `at`, no earlier one than `from`; -1 for none. */
  columnAt(line: Buffer, at: number, from: number): number {
    const heads = this.#heads;
    const likely = this.#next[from] as number;
    if (likely < heads.length && beginsWith(line, at, heads[likely] as Buffer)) return likely;
    for (let column = from; column < heads.length; column += 1) {
      if (!beginsWith(line, at, heads[column] as Buffer)) continue;
      this.#next[from] = column;
      return column;
    }
    return -1;
  }

  /** Bytes of the column's name in a row, with its colon. */
  lengthOf(column: number): number {
    return this.#heads[column]?.length ?? 0;
  }
}
