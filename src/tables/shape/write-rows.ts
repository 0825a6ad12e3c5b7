import { ByteWriter } from '../../lib/byte-writer.ts';
import { plainValue } from './column-types.ts';
import { hasKnownKey, inheritsKnownKey, type RowIds } from './row-id.ts';
import type { ColumnPlan, RowPlan } from './row-plan.ts';
import type { RowState } from './row-state.ts';

/** Takes rows value by value. */
export interface RowTarget {
  /**
   * The text of a value, as JSON. Bytes that are the same object hold the same text until the row ends.
   * @param column index in `allColumnsOf` the table; they come in the order of `columnsInRow`
   * @param to negative for a text with escapes and for JSON that is not canonical
   */
  value(column: number, bytes: Uint8Array, from: number, to: number): void;
  /** The row has all its values; a column that had none is null. */
  end(): void;
}

/** Texts of small numbers, made once. */
const numbers: Buffer[] = [];
const MOST_NUMBERS = 10_000;

/** Writes a document's own row. */
export function writeRow(target: RowTarget, row: RowState, bytes: Uint8Array, ids: RowIds): void {
  if (!hasKnownKey(row)) writeId(target, row.plan, ids.of(null));
  writeSlots(target, row, bytes, row.extra.finish());
  target.end();
}

/** @param extra the row's `extra`, complete; empty for none */
function writeSlots(target: RowTarget, row: RowState, bytes: Uint8Array, extra: Uint8Array): void {
  const { plan, from, given, givenTo, filled } = row;
  const { numbers: numberOf, columns, position, repetition, extra: extraSlot } = plan;
  const own = columns.length;
  for (let slot = 0; slot < given.length; slot += 1) {
    // After the columns, `from` has the values of older documents, and `given` what follows `extra`.
    const start = slot < own ? (from[slot] as number) : -1;
    const givenEnd = givenTo[slot] as number;
    const number = numberOf[slot] as number;
    if (start >= 0) {
      filled[slot] = (filled[slot] as number) + 1;
      writeValue(target, bytes, number, row, slot);
    } else if (givenEnd !== 0) target.value(number, given[slot] as Uint8Array, 0, givenEnd);
    else if (slot === position) writeNumber(target, number, row.position);
    else if (slot === repetition && row.repetition > 0) writeNumber(target, number, row.repetition);
    else if (slot === extraSlot && extra.length > 0) target.value(number, extra, 0, extra.length);
  }
  row.rows += 1;
}

/** Targets get numbers and times in their usual form. */
function writeValue(target: RowTarget, bytes: Uint8Array, number: number, row: RowState, slot: number): void {
  const [start, end] = [row.from[slot] as number, row.to[slot] as number];
  const { type } = row.plan.columns[slot] as ColumnPlan;
  if (end >= 0 || (type !== 'integer' && type !== 'timestamp'))
    return target.value(number, bytes, start, end);
  const value = plainValue(type, bytes, start, -end);
  target.value(number, value, 0, value.length);
}

function writeId(target: RowTarget, { rowId }: RowPlan, id: Uint8Array): void {
  target.value(rowId, id, 0, id.length);
}

function writeNumber(target: RowTarget, number: number, value: number): void {
  let text = numbers[value];
  if (text === undefined) {
    text = Buffer.from(String(value));
    if (value < MOST_NUMBERS) numbers[value] = text;
  }
  target.value(number, text, 0, text.length);
}

/** Writes what a row inherits from the one around it. */
function writeInherited(
  target: RowTarget,
  { inherited }: RowPlan,
  around: RowState,
  bytes: Uint8Array,
  extra: Uint8Array,
): void {
  const { plan, given, givenTo } = around;
  for (const { number, slot } of inherited) {
    if ((around.from[slot] as number) >= 0) writeValue(target, bytes, number, around, slot);
    else if (givenTo[slot] !== 0) target.value(number, given[slot] as Uint8Array, 0, givenTo[slot] as number);
    else if (slot === plan.extra && extra.length > 0) target.value(number, extra, 0, extra.length);
  }
}

/** Rows of a table inside a document. They are kept until the document ends, where what they inherit may stand. */
export class InnerRows {
  count = 0;
  readonly state: RowState;
  /** Of each row: `from` and `to` of its slots, its position, its repetition, and where its `extra` ends. */
  #rows = new Int32Array(1024);
  readonly #extras = new ByteWriter();

  constructor(state: RowState) {
    this.state = state;
  }

  clear(): void {
    this.count = 0;
    this.#extras.length = 0;
  }

  /** Keeps the row that the state has now. */
  add(): void {
    const { from, to, position, repetition, extra } = this.state;
    this.#extras.append(extra.finish());
    const at = this.count * this.#size;
    const end = at + this.#size;
    if (end > this.#rows.length) this.#rows = new Int32Array(this.#rows.buffer.transfer(end * 8));
    this.#rows.set(from, at);
    this.#rows.set(to, at + from.length);
    this.#rows[end - 3] = position;
    this.#rows[end - 2] = repetition;
    this.#rows[end - 1] = this.#extras.length;
    this.count += 1;
  }

  get #size(): number {
    return this.state.from.length * 2 + 3;
  }

  /** Writes all of them; `clear` removes them. */
  write(target: RowTarget, around: RowState, bytes: Uint8Array, ids: RowIds): void {
    const inherited = around.extra.finish();
    const { state } = this;
    const inheritsKey = inheritsKnownKey(state.plan, around);
    let extraFrom = 0;
    for (let i = 0; i < this.count; i += 1) {
      const extraTo = this.#restore(i);
      const extra = this.#extras.buffer.subarray(extraFrom, extraTo);
      extraFrom = extraTo;
      if (!inheritsKey || !hasKnownKey(state)) writeId(target, state.plan, ids.of(state.position));
      writeInherited(target, state.plan, around, bytes, inherited);
      writeSlots(target, state, bytes, extra);
      target.end();
    }
  }

  /** Restores a row in the state. @returns where its `extra` ends */
  #restore(row: number): number {
    const { from, to } = this.state;
    const [at, end] = [row * this.#size, (row + 1) * this.#size];
    for (let slot = 0; slot < from.length; slot += 1) {
      from[slot] = this.#rows[at + slot] as number;
      to[slot] = this.#rows[at + from.length + slot] as number;
    }
    this.state.position = this.#rows[end - 3] as number;
    this.state.repetition = this.#rows[end - 2] as number;
    return this.#rows[end - 1] as number;
  }
}
