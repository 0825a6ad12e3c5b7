import { ByteWriter } from '../../lib/byte-writer.ts';
import { CLOSE_BRACE, COMMA, OPEN_BRACE } from '../../lib/json-text.ts';
import type { RowPlan } from './plan.ts';
import { hasKnownKey, inheritsKnownKey, type RowIds } from './row-id.ts';
import type { RowState } from './row-state.ts';
import { giveRow, type RowTarget, WaitingRows } from './row-target.ts';
import { writeInherited, writeRow, writeRowId } from './write-row.ts';

const SPACE = 0x20;

/** Rows of one table that nobody has taken yet, and how many there have been. */
interface Output {
  rows: ByteWriter;
  count: number;
}

/** Where finished rows go: as lines that wait to be taken, or value by value to targets. */
export class RowOutputs {
  readonly #outputs: ReadonlyMap<string, Output>;
  readonly #targets: ReadonlyMap<string, RowTarget> | undefined;
  /** Rows inside the document. They wait for what they inherit from it, which may stand after them. */
  readonly #waiting = new ByteWriter(64 * 1024);
  readonly #waitingRows: { plan: RowPlan; end: number; position: number; hasKnownKey: boolean }[] = [];
  readonly #inherited = new ByteWriter();
  /** The same rows where they are given to targets. */
  readonly #waitingFor = new Map<RowPlan, WaitingRows>();

  /**
   * @param tables whose rows are wanted
   * @param targets by table; with it no rows wait to be taken
   */
  constructor(tables: readonly string[], targets: ReadonlyMap<string, RowTarget> | undefined) {
    this.#outputs = new Map(tables.map((name) => [name, { rows: new ByteWriter(), count: 0 }]));
    this.#targets = targets;
  }

  has(table: string): boolean {
    return this.#outputs.has(table);
  }

  /** Prepares for rows inside a document. */
  expect(state: RowState): void {
    if (this.#targets !== undefined) this.#waitingFor.set(state.plan, new WaitingRows(state));
  }

  /** Rows so far. */
  count(table: string): number {
    return this.#output(table).count;
  }

  counts(): Record<string, number> {
    return Object.fromEntries([...this.#outputs].map(([name, { count }]) => [name, count]));
  }

  /** Adds rows that are complete, as lines of NDJSON. */
  add(table: string, rows: Uint8Array, count: number): void {
    const output = this.#output(table);
    output.rows.append(rows);
    output.count += count;
  }

  /** Begins to count anew. */
  forget(): void {
    for (const output of this.#outputs.values()) output.count = 0;
  }

  /** @see Shaper.take */
  take(table: string, spare: ByteWriter): ByteWriter {
    const output = this.#output(table);
    const { rows } = output;
    spare.length = 0;
    output.rows = spare;
    return rows;
  }

  /** Bytes of rows that wait to be taken. */
  waiting(table: string): number {
    return this.#output(table).rows.length;
  }

  /** Whether the document has had rows inside it so far. */
  get holdsInner(): boolean {
    return this.#waitingRows.length > 0;
  }

  /** Forgets the rows inside a document that came to nothing. */
  clear(): void {
    this.#waiting.length = 0;
    this.#waitingRows.length = 0;
    if (this.#waitingFor.size > 0) for (const waiting of this.#waitingFor.values()) waiting.clear();
  }

  /** Takes a row inside the document. */
  hold(row: RowState, bytes: Buffer): void {
    if (this.#targets === undefined) writeRow(this.#waiting, row, bytes, null);
    else this.#waitingFor.get(row.plan)?.add();
    const { plan, position } = row;
    this.#waitingRows.push({ plan, end: this.#waiting.length, position, hasKnownKey: hasKnownKey(row) });
  }

  /** Writes the document's own row, where it is wanted, and the rows held. */
  write(row: RowState, bytes: Buffer, ids: RowIds): void {
    const own = row.plan.ownRows ? this.#outputs.get(row.plan.table) : undefined;
    if (own !== undefined) {
      own.count += 1;
      if (this.#targets === undefined) writeRow(own.rows, row, bytes, hasKnownKey(row) ? null : ids.of(null));
      else {
        const target = targetOf(this.#targets, row.plan.table);
        giveRow(target, row, bytes, ids);
        target.end();
      }
    }
    if (this.#waitingRows.length === 0) return;
    if (this.#targets === undefined) this.#release(row, bytes, ids);
    else this.#give(row, this.#targets, bytes, ids);
  }

  #give(row: RowState, targets: ReadonlyMap<string, RowTarget>, bytes: Buffer, ids: RowIds): void {
    for (const [{ table }, waiting] of this.#waitingFor) {
      if (waiting.count === 0) continue;
      waiting.give(targetOf(targets, table), row, bytes, ids);
      this.#output(table).count += waiting.count;
    }
  }

  /** Completes the rows inside the document with what they inherit. */
  #release(row: RowState, bytes: Buffer, ids: RowIds): void {
    const inherited = this.#inherited;
    let prepared: RowPlan | null = null;
    let inheritsKey = true;
    let from = 0;
    for (const { plan, end, position, hasKnownKey: isKnown } of this.#waitingRows) {
      if (prepared !== plan) {
        inherited.length = 0;
        writeInherited(inherited, row, plan, bytes);
        inheritsKey = inheritsKnownKey(plan, row);
        prepared = plan;
      }
      const hasId = !isKnown || !inheritsKey;
      inherited.buffer[0] = hasId ? COMMA : OPEN_BRACE;
      const output = this.#output(plan.table);
      const { rows } = output;
      if (hasId) writeRowId(rows, ids.of(position));
      rows.room(inherited.length + end - from);
      inherited.buffer.copy(rows.buffer, rows.length, 0, inherited.length);
      const at = rows.length + inherited.length;
      this.#waiting.buffer.copy(rows.buffer, at, from, end);
      // A row of nothing but what it inherits needs no comma.
      if (hasId || inherited.length > 0)
        rows.buffer[at] = rows.buffer[at + 1] === CLOSE_BRACE ? SPACE : COMMA;
      rows.length = at + end - from;
      output.count += 1;
      from = end;
    }
  }

  #output(table: string): Output {
    const output = this.#outputs.get(table);
    if (output === undefined) throw new Error(`table ${table} is not among the wanted ones`);
    return output;
  }
}

function targetOf(targets: ReadonlyMap<string, RowTarget>, table: string): RowTarget {
  const target = targets.get(table);
  if (target === undefined) throw new Error(`there is no target for ${table}`);
  return target;
}
