import { hash } from 'node:crypto';
import type { RowPlan } from './row-plan.ts';
import { INVALID, type RowState } from './row-state.ts';

const HASH_DIGITS = 32;

/** Ids of rows with an unknown key: the same bytes at the same offset in the same event or file have the same id. */
export class RowIds {
  #source: () => string = () => '';
  /** What `#source` has answered. */
  #name: string | null = null;
  #offset = 0;
  /** Documents at the same offset before this one. */
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

  /** The next document stands at the same offset. */
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
    const at = JSON.stringify([this.#name, this.#offset, this.#before]);
    return hash('sha256', Buffer.concat([Buffer.from(at), this.#document]), 'hex').slice(0, HASH_DIGITS);
  }
}

/** True when the row's own part of its key has its values, or the table's rows always do. */
export function hasKnownKey(row: RowState): boolean {
  return row.plan.rowId < 0 || identifies(row.plan.identity, row);
}

/** True when what rows of `plan` inherit of their key has its values in the row around them. */
export function inheritsKnownKey({ rowId, inheritedIdentity }: RowPlan, around: RowState): boolean {
  if (rowId < 0 || inheritedIdentity.groups.length === 0) return true;
  return identifies(inheritedIdentity, around) && hasKnownKey(around);
}

function identifies({ groups, valid }: RowPlan['identity'], row: RowState): boolean {
  for (const slot of valid) if (row.from[slot] === INVALID) return false;
  for (const group of groups) if (!group.some((slot) => row.hasValue(slot))) return false;
  return true;
}
