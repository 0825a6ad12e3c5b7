import { asBuffer } from '../lib/byte-writer.ts';
import { CLOSE_BRACE, COMMA, QUOTE, skipString, skipValue } from '../lib/json-text.ts';
import { footerOf, MAGIC } from '../parquet/footer.ts';
import { RowColumns } from '../parquet/row-columns.ts';
import { encodeGroup, placed } from '../parquet/row-group.ts';
import type { Column, TableDefinition } from '../warehouse/definition.ts';
import { columnsInRow } from '../warehouse/shape/plan.ts';

const LINE_FEED = 10;

/** Rows as the shaper writes them, turned into a Parquet file: what reads that takes numbers and JSON as they are. */
export class ParquetRows {
  readonly #columns: readonly Column[];
  readonly #heads: readonly Buffer[];
  readonly #rows: RowColumns;

  constructor(definition: TableDefinition) {
    this.#columns = columnsInRow(definition);
    this.#heads = this.#columns.map(({ name }) => Buffer.from(`${JSON.stringify(name)}:`));
    this.#rows = new RowColumns(this.#columns);
  }

  /** @returns the file, in pieces */
  of(lines: Buffer): readonly Buffer[] {
    const rows = this.#rows;
    for (let at = 0; at < lines.length;) at = this.#row(lines, at);
    const { bytes, meta } = encodeGroup(this.#columns, rows.gathered(), 'none');
    rows.clear();
    return [MAGIC, asBuffer(bytes), footerOf(this.#columns, [placed(meta, MAGIC.length)])];
  }

  /** The members of a row stand in the order of `columnsInRow`; those without a value are left out. @returns where the next begins */
  #row(lines: Buffer, start: number): number {
    let at = start + 1;
    for (const [column, head] of this.#heads.entries()) {
      if (lines.compare(head, 0, head.length, at, Math.min(at + head.length, lines.length)) !== 0) continue;
      at += head.length;
      const to = this.#endOf(lines, at, column);
      this.#rows.value(column, lines, at, to);
      at = Math.abs(to);
      if (lines[at] === COMMA) at += 1;
    }
    if (lines[at] !== CLOSE_BRACE || lines[at + 1] !== LINE_FEED)
      throw new Error('a row has a column that its table has not, or another order');
    this.#rows.end();
    return at + 2;
  }

  /** Negative for a text with escapes. JSON is canonical: the shaper has made it so. */
  #endOf(lines: Buffer, at: number, column: number): number {
    if (this.#columns[column]?.type === 'json') return skipValue(lines, at, 1);
    return lines[at] === QUOTE ? skipString(lines, at) : skipValue(lines, at, 1);
  }
}
