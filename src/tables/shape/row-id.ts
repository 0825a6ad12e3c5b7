import { hash } from 'node:crypto';
import type { RowPlan } from './plan.ts';
import type { RowState } from './row-state.ts';

/** In place of where a value stands: it is in the document, and does not fit its column. */
export const INVALID = -2;

/** The shortest text in quotes that says something. */
const LEAST_TEXT = 3;
const HASH_DIGITS = 32;

/** Names the rows whose keys are unknown: the same bytes at the same place in the same event or file have the same name. */
export class RowIds {
  #source: () => string = () => '';
  /** What `#source` has answered. */
  #name: string | null = null;
  #offset = 0;
  /** Documents of the same place before this one. */
  #before = 0;
  #document: Uint8Array = new Uint8Array(0);
  #hash: string | null = null;

  /** The documents that follow are of this event or file. */
  from(source: () => string): void {
    this.#source = source;
    this.#name = null;
    this.at(0);
  }

  /** The next document stands at this byte of the text. */
  at(offset: number): void {
    this.#offset = offset;
    this.#before = 0;
  }

  begin(document: Uint8Array): void {
    this.#document = document;
    this.#hash = null;
  }

  /** The next document is of the same place. */
  next(): void {
    this.#before += 1;
  }

  /** @param position of a row inside the document; @returns JSON */
  of(position: number | null): Buffer {
    this.#hash ??= this.#hashOfDocument();
    return Buffer.from(position === null ? `"${this.#hash}"` : `"${this.#hash}:${position}"`);
  }

  #hashOfDocument(): string {
    this.#name ??= this.#source();
    const place = JSON.stringify([this.#name, this.#offset, this.#before]);
    return hash('sha256', Buffer.concat([Buffer.from(place), this.#document]), 'hex').slice(0, HASH_DIGITS);
  }
}

/** True when the row's own part of its key has its values, or the table's rows always do. */
export function hasKnownKey(row: RowState): boolean {
  return row.plan.rowId < 0 || fulfils(row.plan.identity, row);
}

/** True when what rows of `plan` inherit of their key has its values in the row around them. */
export function inheritsKnownKey(plan: RowPlan, around: RowState): boolean {
  if (plan.rowId < 0 || plan.inheritedIdentity.groups.length === 0) return true;
  return fulfils(plan.inheritedIdentity, around) && hasKnownKey(around);
}

function fulfils({ groups, valid }: RowPlan['identity'], row: RowState): boolean {
  for (const slot of valid) if (row.from[slot] === INVALID) return false;
  for (const group of groups) if (!hasOne(group, row)) return false;
  return true;
}

function hasOne(group: readonly number[], row: RowState): boolean {
  for (const slot of group) if (hasValue(row, slot)) return true;
  return false;
}

function hasValue({ plan, from, to, given }: RowState, slot: number): boolean {
  const column = plan.columns[slot];
  const start = column === undefined ? -1 : (from[slot] as number);
  if (start < 0) return (given[slot] as Uint8Array).length >= LEAST_TEXT;
  return column?.type !== 'text' || Math.abs(to[slot] as number) - start >= LEAST_TEXT;
}
