import {
  BACKSLASH,
  beginsWith,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LOWER_N,
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
import { readColumn } from './column-types.ts';
import type { ExtraFields } from './extra-fields.ts';
import { InvalidRow } from './reject.ts';
import { type Field, type Fields, hashByte, type NestedPlan, pathOf, type RowPlan } from './row-plan.ts';
import { INVALID, type RowState } from './row-state.ts';
import type { InnerRows } from './write-rows.ts';

/**
 * Reads a document's bytes into rows, stepping over every byte once and strictly. It notes where values stand; only what goes to
 * `extra` is copied, and nothing is decoded.
 */
export class RowReader {
  /** The last document has the array or map that rows are in. */
  foundRows = false;
  readonly #inner: ReadonlyMap<RowPlan, InnerRows>;
  readonly #extraFields: ExtraFields;
  readonly #onRefused: (table: string, error: InvalidRow) => void;
  #bytes: Buffer = Buffer.alloc(0);
  /** The key of the member being read, with its quotes; the end is negative when it has escapes. */
  #keyFrom = 0;
  #keyTo = 0;

  /**
   * @param inner rows inside the document, of tables that are wanted
   * @param onRefused a row inside the document is invalid; the others stay unless it throws
   */
  constructor(
    inner: ReadonlyMap<RowPlan, InnerRows>,
    extraFields: ExtraFields,
    onRefused: (table: string, error: InvalidRow) => void,
  ) {
    this.#inner = inner;
    this.#extraFields = extraFields;
    this.#onRefused = onRefused;
  }

  /**
   * Reads the object at `at` into the row, and rows inside it into theirs. Returns the index after the object.
   * @throws JsonFault, or InvalidRow when the row cannot be
   */
  read(row: RowState, bytes: Buffer, at: number): number {
    this.#bytes = bytes;
    this.foundRows = false;
    for (const rows of this.#inner.values()) {
      rows.clear();
      rows.state.beginDocument();
    }
    row.beginRow();
    return this.#object(row.plan.fields, row, at, 1);
  }

  /**
   * Reads the object that is a member of the object in `bytes`. Returns its bytes; null when there is not exactly one such member, or a
   * name has escapes.
   * @param name in quotes
   * @throws as `read`
   */
  readMember(row: RowState, bytes: Buffer, name: Uint8Array): Buffer | null {
    let document: Buffer | null = null;
    let i = skipWhite(bytes, 0);
    if (bytes[i] !== OPEN_BRACE) return null;
    do {
      const keyFrom = skipWhite(bytes, i + 1);
      const keyTo = skipKey(bytes, keyFrom);
      if (keyTo < 0) return null;
      const at = skipColon(bytes, keyTo);
      if (keyTo - keyFrom === name.length && beginsWith(bytes, keyFrom, name)) {
        if (document !== null || bytes[at] !== OPEN_BRACE) return null;
        i = this.read(row, bytes, at);
        document = bytes.subarray(at, i);
      } else {
        i = skipValue(bytes, at, 2);
      }
      i = skipWhite(bytes, i);
    } while (bytes[i] === COMMA);
    return bytes[i] === CLOSE_BRACE && skipWhite(bytes, i + 1) === bytes.length ? document : null;
  }

  #object(fields: Fields, row: RowState, at: number, depth: number): number {
    const bytes = this.#bytes;
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
      this.#keyFrom = keyFrom;
      this.#keyTo = keyTo;
      i =
        field === undefined
          ? this.#toExtra(fields, row, i, depth)
          : this.#member(fields, field, row, i, depth);
      if ((bytes[i] as number) <= 0x20) i = skipWhite(bytes, i);
      if (bytes[i] === CLOSE_BRACE) return i + 1;
      if (bytes[i] !== COMMA) throw unexpected(bytes, i);
      i += 1;
      if (bytes[i] !== QUOTE) i = skipWhite(bytes, i);
    }
  }

  #member(fields: Fields, field: Field, row: RowState, at: number, depth: number): number {
    const { slot, nested, fields: inner, object } = field;
    if (slot >= 0) return this.#column(fields, field, row, at, depth);
    const bytes = this.#bytes;
    if (this.#replace(row, object)) this.#forget(field, row);
    if (bytes[at] === LOWER_N) return skipScalar(bytes, at);
    const opens = nested?.each === 'array' ? OPEN_BRACKET : OPEN_BRACE;
    if (bytes[at] !== opens && !holdsFrame(row.plan, pathOf(fields.path, field.name)))
      return this.#toExtra(fields, row, at, depth);
    row.from[object] = at;
    if (nested !== null) return (row.to[object] = this.#nested(nested, at, depth + 1));
    if (bytes[at] !== OPEN_BRACE || inner === null)
      throw wrongType(bytes, at, depth, 'an object', pathOf(fields.path, field.name));
    row.extra.enter(inner);
    const end = this.#object(inner, row, at, depth + 1);
    row.extra.leave();
    return (row.to[object] = end);
  }

  /** A member that a column reads, or two: the second takes what the first does not. */
  #column(fields: Fields, field: Field, row: RowState, at: number, depth: number): number {
    const bytes = this.#bytes;
    const { slot, type, other } = field;
    this.#replace(row, slot);
    if (other !== null) this.#replace(row, other.slot);
    if (bytes[at] === LOWER_N) return skipScalar(bytes, at);
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
      throw new InvalidRow('wrong_type', `${pathOf(fields.path, field.name)} has to be a ${type}`);
    }
    row.from[slot] = INVALID;
    return this.#toExtra(fields, row, at, depth);
  }

  /** The last member of a name counts, as for every JSON reader; an earlier one goes to `extra`. Returns true if there is one. */
  #replace(row: RowState, slot: number): boolean {
    const from = row.from[slot] as number;
    if (from < 0) return false;
    row.extra.member(this.#bytes, this.#keyFrom, this.#keyTo, from, Math.abs(row.to[slot] as number));
    row.from[slot] = -1;
    return true;
  }

  /** Removes what was read of an object or a list. */
  #forget({ nested, fields }: Field, row: RowState): void {
    const rows = nested === null ? undefined : this.#inner.get(nested.row);
    rows?.clear();
    rows?.state.beginDocument();
    for (const field of fields?.members() ?? []) {
      row.from[field.slot < 0 ? field.object : field.slot] = -1;
      if (field.other !== null) row.from[field.other.slot] = -1;
      this.#forget(field, row);
    }
  }

  #toExtra(fields: Fields, row: RowState, at: number, depth: number): number {
    const [bytes, keyFrom, keyTo] = [this.#bytes, this.#keyFrom, this.#keyTo];
    const end = skipValue(bytes, at, depth + 1);
    this.#extraFields.count(fields, row.plan.table, bytes, keyFrom, keyTo, at);
    row.extra.member(bytes, keyFrom, keyTo, at, end);
    return end;
  }

  /** Reads the rows inside the array or map at `at`. */
  #nested(nested: NestedPlan, at: number, depth: number): number {
    const bytes = this.#bytes;
    const isMap = nested.each === 'map';
    if (bytes[at] !== (isMap ? OPEN_BRACE : OPEN_BRACKET))
      throw wrongType(bytes, at, depth, isMap ? 'an object' : 'an array', nested.path);
    this.foundRows = true;
    const rows = this.#inner.get(nested.row);
    if (rows === undefined) return skipValue(bytes, at, depth);
    const { state } = rows;
    const close = isMap ? CLOSE_BRACE : CLOSE_BRACKET;
    const { key } = nested.row;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === close) return i + 1;
    for (;;) {
      state.beginRow();
      if (isMap) {
        const end = skipKey(bytes, i);
        if (key >= 0) {
          state.from[key] = i;
          state.to[key] = end;
        }
        i = skipColon(bytes, Math.abs(end));
      }
      i = skipWhite(bytes, this.#nestedRow(nested, rows, i, depth + 1));
      state.position += 1;
      if (bytes[i] === close) return i + 1;
      if (bytes[i] !== COMMA) throw unexpected(bytes, i);
      i = skipWhite(bytes, i + 1);
    }
  }

  #nestedRow({ path, each }: NestedPlan, rows: InnerRows, at: number, depth: number): number {
    const bytes = this.#bytes;
    const { state } = rows;
    try {
      let end: number;
      // A member of a map without a value is a row of its name alone.
      if (each === 'map' && bytes[at] === LOWER_N) end = skipScalar(bytes, at);
      else if (bytes[at] === OPEN_BRACE) end = this.#object(state.plan.fields, state, at, depth);
      else throw wrongType(bytes, at, depth, 'an object', `item ${state.position} of ${path}`);
      state.complete(bytes);
      rows.add();
      return end;
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error;
      this.#onRefused(state.plan.table, error);
      return skipValue(bytes, at, depth);
    }
  }
}

/** True when rows of a frame stand at this path or below it: where they cannot be, the frame is of another shape. */
function holdsFrame({ ownRows, nested }: RowPlan, path: string): boolean {
  return !ownRows && nested.some((one) => one.path === path || one.path.startsWith(`${path}.`));
}

/** @throws JsonFault when the value is not JSON, which matters more than its type */
function wrongType(bytes: Uint8Array, at: number, depth: number, wanted: string, path: string): InvalidRow {
  skipValue(bytes, at, depth + 1);
  return new InvalidRow('wrong_type', `${path} has to be ${wanted}`);
}
