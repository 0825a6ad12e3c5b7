import { ByteWriter } from '../../lib/byte-writer.ts';
import type { RowPlan } from './plan.ts';
import { hasKnownKey, inheritsKnownKey, type RowIds } from './row-id.ts';
import type { RowState } from './row-state.ts';

/** Takes rows value by value, instead of the lines of NDJSON that the shaper would write. */
export interface RowTarget {
  /**
   * The text of a value, as JSON. Bytes that are the same object hold the same text until the row ends.
   * @param column index in `columnsOf` the table
   * @param to negative for a text with escapes and for JSON that is not canonical
   */
  value(column: number, bytes: Uint8Array, from: number, to: number): void;
  /** The row has all its values; a column that had none is null. */
  end(): void;
}

/** A row as it stands in the document. */
interface Slots {
  readonly from: Int32Array;
  readonly to: Int32Array;
  position: number;
  repetition: number;
}

interface HeldRow extends Slots {
  extraTo: number;
  hasKnownKey: boolean;
}

/** Texts of numbers, made once; more of them are made each time. */
const numbers: Buffer[] = [];
const MOST_NUMBERS = 10_000;

/** Hands on a row's own values. */
export function giveRow(target: RowTarget, row: RowState, bytes: Uint8Array, ids: RowIds): void {
  if (!hasKnownKey(row)) giveId(target, row.plan, ids.of(null));
  giveSlots(target, row, row, bytes, row.extra.finish());
}

/**
 * @param slots where the row's values stand
 * @param state of the same plan; has what an event says
 * @param extra the row's `extra`, complete; empty for none
 */
function giveSlots(
  target: RowTarget,
  { from, to, position, repetition }: Slots,
  { plan, given, givenTo, filled }: RowState,
  bytes: Uint8Array,
  extra: Uint8Array,
): void {
  const { numbers: numberOf, columns } = plan;
  for (let slot = 0; slot < columns.length; slot += 1) {
    const start = from[slot] as number;
    if (start < 0) continue;
    filled[slot] = (filled[slot] as number) + 1;
    target.value(numberOf[slot] as number, bytes, start, to[slot] as number);
  }
  for (const slot of plan.elsewhere) {
    const number = numberOf[slot] as number;
    // Behind the columns that a document may have, `from` has places where older documents have them.
    if (slot < columns.length && (from[slot] as number) >= 0) continue;
    if (givenTo[slot] !== 0) target.value(number, given[slot] as Uint8Array, 0, givenTo[slot] as number);
    else if (slot === plan.position) giveNumber(target, number, position);
    else if (slot === plan.repetition && repetition > 0) giveNumber(target, number, repetition);
    else if (slot === plan.extra && extra.length > 0) target.value(number, extra, 0, extra.length);
  }
}

function giveId(target: RowTarget, { rowId }: RowPlan, id: Uint8Array): void {
  target.value(rowId, id, 0, id.length);
}

function giveNumber(target: RowTarget, number: number, value: number): void {
  let text = numbers[value];
  if (text === undefined) {
    text = Buffer.from(String(value));
    if (value < MOST_NUMBERS) numbers[value] = text;
  }
  target.value(number, text, 0, text.length);
}

/** Hands on what a row inherits from the one around it. */
function giveInherited(
  target: RowTarget,
  { inherited }: RowPlan,
  { plan, from, to, given, givenTo }: RowState,
  bytes: Uint8Array,
  extra: Uint8Array,
): void {
  for (const { number, slot } of inherited) {
    if ((from[slot] as number) >= 0) target.value(number, bytes, from[slot] as number, to[slot] as number);
    else if (givenTo[slot] !== 0) target.value(number, given[slot] as Uint8Array, 0, givenTo[slot] as number);
    else if (slot === plan.extra && extra.length > 0) target.value(number, extra, 0, extra.length);
  }
}

/** Rows of a table inside a document. They wait for what they inherit from it, which may stand after them. */
export class WaitingRows {
  count = 0;
  readonly #state: RowState;
  readonly #rows: HeldRow[] = [];
  readonly #extras = new ByteWriter();

  constructor(state: RowState) {
    this.#state = state;
  }

  clear(): void {
    this.count = 0;
    this.#extras.length = 0;
  }

  /** Keeps the row that the state has now. */
  add(): void {
    const { from, to, position, repetition, extra } = this.#state;
    this.#extras.append(extra.finish());
    const row = (this.#rows[this.count] ??= {
      from: new Int32Array(from.length),
      to: new Int32Array(to.length),
      position: 0,
      repetition: 0,
      extraTo: 0,
      hasKnownKey: true,
    });
    row.from.set(from);
    row.to.set(to);
    row.position = position;
    row.repetition = repetition;
    row.extraTo = this.#extras.length;
    row.hasKnownKey = hasKnownKey(this.#state);
    this.count += 1;
  }

  /** Hands all of them on. They are gone only with `clear`. */
  give(target: RowTarget, around: RowState, bytes: Uint8Array, ids: RowIds): void {
    const inherited = around.extra.finish();
    const { plan } = this.#state;
    const inheritsKey = inheritsKnownKey(plan, around);
    let extraFrom = 0;
    for (let i = 0; i < this.count; i += 1) {
      const row = this.#rows[i] as HeldRow;
      const extra = this.#extras.buffer.subarray(extraFrom, row.extraTo);
      extraFrom = row.extraTo;
      if (!inheritsKey || !row.hasKnownKey) giveId(target, plan, ids.of(row.position));
      giveInherited(target, plan, around, bytes, inherited);
      giveSlots(target, row, this.#state, bytes, extra);
      target.end();
    }
  }
}
