import { ByteWriter } from '../../lib/byte-writer.ts';
import { copy, copyJson, copyText } from '../../lib/json-compact.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { CLOSE_BRACE, COMMA, OPEN_BRACE } from '../../lib/json-text.ts';
import { allColumnsOf, type ColumnType, columnsOf, type TableDefinition } from '../definition.ts';
import type { RowTarget } from './write-rows.ts';
import { copyTime } from './time.ts';

const LINE_FEED = 10;
/** Bytes by which a time can become longer than twice its text: seconds, and minutes of its zone. */
const TIME_GROWS = 6;

interface Column {
  /** `,"name":` */
  readonly head: Uint8Array;
  readonly copy: typeof copyText;
}

const columnsIn = new WeakMap<TableDefinition, readonly (Column | null)[]>();

/** Rows of one table as lines of NDJSON: objects with the columns that have a value, in the order of `columnsInRow`. */
export class RowLines implements RowTarget {
  /** Rows that are not taken yet. */
  rows = 0;
  readonly definition: TableDefinition;
  /** Null for one that is not wanted. */
  readonly #columns: readonly (Column | null)[];
  #text = new ByteWriter();
  /** Index of the row that is being written. */
  #start = 0;

  constructor(definition: TableDefinition) {
    this.definition = definition;
    this.#columns = getOrMake(columnsIn, definition, () => {
      const wanted = new Set(columnsOf(definition));
      return allColumnsOf(definition).map((column) =>
        wanted.has(column)
          ? { head: Buffer.from(`,${JSON.stringify(column.name)}:`), copy: copierOf(column.type) }
          : null,
      );
    });
  }

  /** Bytes of them. */
  get bytes(): number {
    return this.#text.length;
  }

  value(column: number, bytes: Uint8Array, from: number, to: number): void {
    const found = this.#columns[column] as Column | null;
    if (found === null) return;
    const { head, copy: copyValue } = found;
    const out = this.#text;
    out.room(head.length + (Math.abs(to) - from) * 2 + TIME_GROWS);
    const at = copy(head, 0, head.length, out.buffer, out.length);
    out.length = copyValue(bytes, from, to, out.buffer, at);
  }

  end(): void {
    const out = this.#text;
    out.room(3);
    const { buffer } = out;
    let at = out.length;
    // Each column has a comma in front; the brace replaces the first one.
    if (at === this.#start) {
      buffer[at] = COMMA;
      at += 1;
    }
    buffer[this.#start] = OPEN_BRACE;
    buffer[at] = CLOSE_BRACE;
    buffer[at + 1] = LINE_FEED;
    out.length = at + 2;
    this.#start = out.length;
    this.rows += 1;
  }

  /** Adds rows that are lines already. */
  append(lines: Uint8Array, rows: number): void {
    this.#text.append(lines);
    this.#start = this.#text.length;
    this.rows += rows;
  }

  take(): { readonly definition: TableDefinition; readonly rows: number; readonly bytes: Buffer } {
    const { definition, rows } = this;
    return { definition, rows, bytes: this.swap(new ByteWriter()).view() };
  }

  /**
   * Takes the buffer of the rows so far.
   * @param spare buffer for the next rows; its content is discarded
   */
  swap(spare: ByteWriter): ByteWriter {
    const lines = this.#text;
    this.#text = spare;
    this.clear();
    return lines;
  }

  /** Valid until the next row. */
  view(): Buffer {
    return this.#text.view();
  }

  clear(): void {
    this.#text.length = 0;
    this.#start = 0;
    this.rows = 0;
  }
}

function copierOf(type: ColumnType): typeof copyText {
  if (type === 'timestamp') return copyTime;
  return type === 'json' ? copyJson : copyText;
}

/** Lines of several tables, by name. */
export function linesOf(definitions: readonly TableDefinition[]): Map<string, RowLines> {
  return new Map(definitions.map((definition) => [definition.name, new RowLines(definition)]));
}
