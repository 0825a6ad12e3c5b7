import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipKey,
  skipScalar,
  skipString,
  skipValue,
  skipWhite,
  unexpected,
} from '../../lib/json-text.ts';
import { type Field, type Fields, hashByte, type NestedPlan, pathOf, type RowPlan } from './plan.ts';
import { readColumn } from './fit.ts';
import { InvalidRow } from './reject.ts';
import { INVALID } from './row-id.ts';
import type { RowState } from './row-state.ts';

const LETTER_N = 0x6e;

/** What a reader leaves to whoever shapes the rows. */
export interface RowReaderHost {
  /** The state for a row inside the document; null when its table is not wanted. */
  inner(nested: NestedPlan): RowState | null;
  /** A row inside the document is complete. */
  finished(row: RowState, bytes: Buffer): void;
  /** A row inside the document is not to be; anything but a fault of the row is to be thrown on. */
  refused(row: RowState, error: unknown): void;
  /** A member that no column took, or whose value did not fit. `keyTo` is negative when the key has escapes. */
  unknown(fields: Fields, row: RowState, bytes: Buffer, keyFrom: number, keyTo: number, at: number): void;
}

/**
 * Reads a document's bytes into rows, stepping over every byte once and strictly. It notes where values stand; nothing is
 * decoded or copied but what goes to `extra`.
 */
export class RowReader {
  readonly #host: RowReaderHost;

  constructor(host: RowReaderHost) {
    this.#host = host;
  }

  /**
   * Reads the members of the object at `at` into the row. Returns the index after the object.
   * @throws JsonFault, or InvalidRow when the row cannot be
   */
  object(fields: Fields, row: RowState, bytes: Buffer, at: number, depth: number): number {
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    for (;;) {
      const keyFrom = i;
      if (bytes[i] !== QUOTE) throw unexpected(bytes, i);
      let hash = 0;
      let c = bytes[(i += 1)] as number;
      while (c >= 0x20 && c !== QUOTE && c !== BACKSLASH) {
        hash = hashByte(hash, c);
        c = bytes[(i += 1)] as number;
      }
      const keyTo = c === QUOTE ? i + 1 : skipString(bytes, keyFrom);
      i = Math.abs(keyTo);
      const field =
        c === QUOTE ? fields.find(bytes, keyFrom, i, hash) : fields.findEscaped(bytes, keyFrom, i);
      if (bytes[i] === COLON && (bytes[i + 1] as number) > 0x20) i += 1;
      else i = skipColon(bytes, i);
      i = this.#member(fields, field, row, bytes, keyFrom, keyTo, i, depth);
      if ((bytes[i] as number) <= 0x20) i = skipWhite(bytes, i);
      if (bytes[i] === CLOSE_BRACE) return i + 1;
      if (bytes[i] !== COMMA) throw unexpected(bytes, i);
      i += 1;
      if (bytes[i] !== QUOTE) i = skipWhite(bytes, i);
    }
  }

  #member(
    fields: Fields,
    field: Field | undefined,
    row: RowState,
    bytes: Buffer,
    keyFrom: number,
    keyTo: number,
    at: number,
    depth: number,
  ): number {
    if (field === undefined) return this.#toExtra(fields, row, bytes, keyFrom, keyTo, at, depth);
    const { slot, nested, fields: inner } = field;
    if (slot >= 0) return this.#column(fields, field, row, bytes, keyFrom, keyTo, at, depth);
    if (bytes[at] === LETTER_N) return skipScalar(bytes, at);
    const opens = nested?.each === 'array' ? OPEN_BRACKET : OPEN_BRACE;
    if (bytes[at] !== opens && !holdsFrame(row.plan, pathOf(fields.path, field.name)))
      return this.#toExtra(fields, row, bytes, keyFrom, keyTo, at, depth);
    if (nested !== null) return this.#nested(nested, bytes, at, depth + 1);
    if (bytes[at] !== OPEN_BRACE || inner === null)
      throw wrongType(bytes, at, depth, 'an object', pathOf(fields.path, field.name));
    row.extra.enter(inner);
    const end = this.object(inner, row, bytes, at, depth + 1);
    row.extra.leave();
    return end;
  }

  /** A member that a column reads, or two: the second takes what does not fit the first. */
  #column(
    fields: Fields,
    { slot, type, name, other }: Field,
    row: RowState,
    bytes: Buffer,
    keyFrom: number,
    keyTo: number,
    at: number,
    depth: number,
  ): number {
    giveWay(row, slot, bytes, keyFrom, keyTo);
    if (other !== null) giveWay(row, other.slot, bytes, keyFrom, keyTo);
    if (bytes[at] === LETTER_N) return skipScalar(bytes, at);
    let taken = slot;
    let end = readColumn(type, bytes, at, depth + 1);
    if (end === 0 && other !== null) {
      taken = other.slot;
      end = readColumn(other.type, bytes, at, depth + 1);
    }
    if (end !== 0) {
      row.from[taken] = at;
      row.to[taken] = end;
      return Math.abs(end);
    }
    if (row.plan.required.includes(slot)) {
      skipValue(bytes, at, depth + 1);
      throw new InvalidRow('wrong_type', `${pathOf(fields.path, name)} has to be a ${type}`);
    }
    row.from[slot] = INVALID;
    return this.#toExtra(fields, row, bytes, keyFrom, keyTo, at, depth);
  }

  #toExtra(
    fields: Fields,
    row: RowState,
    bytes: Buffer,
    keyFrom: number,
    keyTo: number,
    at: number,
    depth: number,
  ): number {
    const end = skipValue(bytes, at, depth + 1);
    this.#host.unknown(fields, row, bytes, keyFrom, keyTo, at);
    row.extra.member(bytes, keyFrom, keyTo, at, end);
    return end;
  }

  /** Reads the rows inside the array or map at `at`. */
  #nested(nested: NestedPlan, bytes: Buffer, at: number, depth: number): number {
    const map = nested.each === 'map';
    if (bytes[at] !== (map ? OPEN_BRACE : OPEN_BRACKET))
      throw wrongType(bytes, at, depth, map ? 'an object' : 'an array', nested.path);
    const row = this.#host.inner(nested);
    if (row === null) return skipValue(bytes, at, depth);
    const close = map ? CLOSE_BRACE : CLOSE_BRACKET;
    const { key } = nested.row;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === close) return i + 1;
    for (;;) {
      row.reset();
      if (map) {
        const end = skipKey(bytes, i);
        if (key >= 0) {
          row.from[key] = i;
          row.to[key] = end;
        }
        i = skipColon(bytes, Math.abs(end));
      }
      i = skipWhite(bytes, this.#nestedRow(nested, row, bytes, i, depth + 1));
      row.position += 1;
      if (bytes[i] === close) return i + 1;
      if (bytes[i] !== COMMA) throw unexpected(bytes, i);
      i = skipWhite(bytes, i + 1);
    }
  }

  #nestedRow({ path, each }: NestedPlan, row: RowState, bytes: Buffer, at: number, depth: number): number {
    try {
      let end: number;
      // Something of which only the name is known.
      if (each === 'map' && bytes[at] === LETTER_N) end = skipScalar(bytes, at);
      else if (bytes[at] === OPEN_BRACE) end = this.object(row.plan.fields, row, bytes, at, depth);
      else throw wrongType(bytes, at, depth, 'an object', `item ${row.position} of ${path}`);
      this.#host.finished(row, bytes);
      return end;
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error;
      this.#host.refused(row, error);
      return skipValue(bytes, at, depth);
    }
  }
}

/** A member of the same name that came before gives way, as it does for every JSON reader. */
function giveWay(row: RowState, slot: number, bytes: Buffer, keyFrom: number, keyTo: number): void {
  const from = row.from[slot] as number;
  if (from < 0) return;
  row.extra.member(bytes, keyFrom, keyTo, from, Math.abs(row.to[slot] as number));
  row.from[slot] = -1;
}

/** Whether the rows of a frame stand at this path or below: where they cannot be, the frame is of another shape. */
function holdsFrame({ ownRows, nested }: RowPlan, path: string): boolean {
  return !ownRows && nested.some((one) => one.path === path || one.path.startsWith(`${path}.`));
}

/** JSON that is none at all is the graver fault, so the value is looked at first. */
function wrongType(bytes: Uint8Array, at: number, depth: number, wanted: string, path: string): InvalidRow {
  skipValue(bytes, at, depth + 1);
  return new InvalidRow('wrong_type', `${path} has to be ${wanted}`);
}
