import { isUtf8 } from 'node:buffer';
import { exportsOf, growTo, type WithMemory } from '../../../lib/web-assembly.ts';
import type { Given } from '../../shape/plan.ts';
import type { RowPlan } from '../../shape/row-plan.ts';
import type { ReadyRows } from '../../shape/shape.ts';
import { Layout, OUT, OUT_LENGTH, OUT_SIZE, type RowLayout, ROWS } from './layout.ts';
import { WASM } from './quick-wasm.ts';

/** What `quick.as` exports. */
interface Quick extends WithMemory {
  gatherAt(from: number, to: number): void;
  shape(row: number, from: number, longest: number): number;
  lastStop(): number;
  lastElements(): number;
}

/** Address of the layout; address 0 stands for nothing. */
const TABLES_AT = 1024;
/** Longest text of one `fill`. */
export const TEXT = 256 * 1024;
/** Zeros after the text, at which reading stops. */
const ZEROS = 64;
/** After so many unusual items in a row, the next ones are not tried, because trying costs time. */
const PATIENCE = 4;
const LONGEST_PAUSE = 64;
/** Bytes for rows that are being gathered, and for the rows of each table until they are taken. */
const STATES = 256 * 1024;
const ROWS_SIZE = 512 * 1024;

/** Shapes usual items of arrays in WebAssembly, many in one call; `quick.as` says what is usual. */
export class QuickItems {
  readonly #quick: Quick;
  readonly #root: number;
  readonly #layouts: readonly RowLayout[];
  readonly #words: Uint32Array;
  readonly #textAt: number;
  /** Memory for the text. */
  readonly #space: Buffer;
  #length = 0;
  #isUtf8 = true;
  /** Unusual items in a row, and items to come that are not tried. */
  #refused = 0;
  #pause = 0;

  /** @param tables whose rows are wanted @returns null for documents or engines that it does not support */
  static of(plan: RowPlan, tables: readonly string[], given: Given = {}): QuickItems | null {
    const isUsual =
      [plan, ...plan.nested.map(({ row }) => row)].every(
        ({ ownRows, repetition, rowId, required, columns }) =>
          ownRows &&
          repetition < 0 &&
          rowId < 0 &&
          required.every((slot) => !Object.hasOwn(given, columns[slot]?.name ?? '')),
      ) && plan.nested.every(({ row }) => row.nested.length === 0);
    const quick = isUsual ? (exportsOf(WASM) as Quick | null) : null;
    return quick === null ? null : new QuickItems(quick, plan, tables, given);
  }

  private constructor(quick: Quick, plan: RowPlan, tables: readonly string[], given: Given) {
    this.#quick = quick;
    const layout = new Layout(TABLES_AT, given);
    this.#root = layout.row(plan, tables);
    const textAt = TABLES_AT + layout.bytes.length;
    const statesAt = textAt + TEXT + ZEROS;
    const rowsAt = statesAt + STATES;
    const size = rowsAt + tables.length * ROWS_SIZE;
    growTo(quick, size);
    const { memory } = quick;
    Buffer.from(memory.buffer).set(layout.bytes, TABLES_AT);
    this.#words = new Uint32Array(memory.buffer);
    this.#layouts = layout.rows.filter((row) => tables.includes(row.plan.table));
    for (const [i, row] of this.#layouts.entries()) {
      this.#words[(row.at + OUT) / 4] = rowsAt + i * ROWS_SIZE;
      this.#words[(row.at + OUT_SIZE) / 4] = ROWS_SIZE;
    }
    this.#quick.gatherAt(statesAt, rowsAt);
    this.#textAt = textAt;
    this.#space = Buffer.from(memory.buffer, textAt, TEXT + ZEROS);
  }

  /** Takes a text of at most `TEXT` bytes. Returns it with zeros after it, valid until the next call. */
  fill(text: Buffer): Buffer {
    const length = text.copy(this.#space, 0, 0, TEXT);
    this.#space.fill(0, length, length + ZEROS);
    this.#length = length;
    this.#isUtf8 = isUtf8(withoutEdges(this.#space.subarray(0, length)));
    return this.#space;
  }

  /**
   * Shapes the items from an index of the text on.
   * @returns index of the comma or bracket after the last one that was shaped; 0 when the first is unusual; -1 when the text
   *   ends inside it
   */
  shape(at: number, longest: number): number {
    if (!this.#isUtf8) return 0;
    if (this.#pause > 0) {
      this.#pause -= 1;
      return 0;
    }
    const end = this.#quick.shape(this.#root, this.#textAt + at, longest);
    if (end > 0) {
      this.#refused = 0;
      return end - this.#textAt;
    }
    this.#refused += 1;
    if (this.#refused > PATIENCE) this.#pause = Math.min(this.#refused, LONGEST_PAUSE);
    return this.#quick.lastStop() >= this.#textAt + this.#length ? -1 : 0;
  }

  /** Number of items that the last call shaped. */
  get elements(): number {
    return this.#quick.lastElements();
  }

  /** Calls `take` with the new rows of each table, valid until it returns. */
  takeRows(take: (rows: ReadyRows) => void): void {
    const words = this.#words;
    for (const { plan, at, filled } of this.#layouts) {
      const count = words[(at + ROWS) / 4] as number;
      if (count === 0) continue;
      const from = words[(at + OUT) / 4] as number;
      const counters = words.subarray(filled / 4, filled / 4 + plan.columns.length);
      const rows = new Uint8Array(words.buffer, from, words[(at + OUT_LENGTH) / 4]);
      take({ table: plan.table, rows, count, filled: counters });
      counters.fill(0);
      words[(at + ROWS) / 4] = 0;
      words[(at + OUT_LENGTH) / 4] = 0;
    }
  }
}

function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Without parts of characters at its ends. */
function withoutEdges(text: Buffer): Buffer {
  let from = 0;
  let to = text.length;
  while (from < 3 && isInside(text[from])) from += 1;
  while (to > from && text.length - to < 3 && isInside(text[to - 1])) to -= 1;
  if (to > from && (text[to - 1] as number) >= 0xc0) to -= 1;
  return text.subarray(from, to);
}
