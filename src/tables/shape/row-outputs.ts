import type { RowPlan } from './plan.ts';
import type { RowIds } from './row-id.ts';
import type { RowState } from './row-state.ts';
import { giveRow, type RowTarget, WaitingRows } from './row-target.ts';

/** Where finished rows go, and how many have gone there. */
export class RowOutputs {
  readonly #targets: ReadonlyMap<string, RowTarget>;
  readonly #counts: Map<string, number>;
  /** Rows inside the document. */
  readonly #waiting = new Map<RowPlan, WaitingRows>();

  /**
   * @param tables whose rows are wanted
   * @param targets by table
   */
  constructor(tables: readonly string[], targets: ReadonlyMap<string, RowTarget>) {
    this.#counts = new Map(tables.map((name) => [name, 0]));
    this.#targets = targets;
  }

  has(table: string): boolean {
    return this.#counts.has(table);
  }

  /** Prepares for rows inside a document. */
  expect(state: RowState): void {
    this.#waiting.set(state.plan, new WaitingRows(state));
  }

  /** Rows so far. */
  count(table: string): number {
    return this.#counts.get(table) ?? 0;
  }

  counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  /** Counts rows that have gone there. */
  add(table: string, count: number): void {
    this.#counts.set(table, this.count(table) + count);
  }

  /** Begins to count anew. */
  forget(): void {
    for (const table of this.#counts.keys()) this.#counts.set(table, 0);
  }

  /** Whether the document has had rows inside it so far. */
  get holdsInner(): boolean {
    for (const { count } of this.#waiting.values()) if (count > 0) return true;
    return false;
  }

  /** Forgets the rows inside a document that came to nothing. */
  clear(): void {
    for (const waiting of this.#waiting.values()) waiting.clear();
  }

  /** Takes a row inside the document. */
  hold({ plan }: RowState): void {
    this.#waiting.get(plan)?.add();
  }

  /** Hands on the document's own row, where it is wanted, and the rows held. */
  write(row: RowState, bytes: Buffer, ids: RowIds): void {
    const { ownRows, table } = row.plan;
    if (ownRows && this.has(table)) {
      this.add(table, 1);
      giveRow(this.#targetOf(table), row, bytes, ids);
    }
    for (const [{ table: inner }, waiting] of this.#waiting) {
      if (waiting.count === 0) continue;
      this.add(inner, waiting.count);
      waiting.give(this.#targetOf(inner), row, bytes, ids);
    }
  }

  #targetOf(table: string): RowTarget {
    const target = this.#targets.get(table);
    if (target === undefined) throw new Error(`there is no target for ${table}`);
    return target;
  }
}
