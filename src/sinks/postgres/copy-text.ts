import { ByteWriter } from '../../lib/byte-writer.ts';
import { copy } from '../../lib/json-compact.ts';
import { BACKSLASH, CLOSE_BRACE, COMMA, QUOTE, skipValue } from '../../lib/json-text.ts';
import type { ColumnType, TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';

const LINE_FEED = 10;
const TAB = 9;
/** Behind a backslash. */
const NULL = 0x4e;
const U = 0x75;

/**
 * Rows as the shaper writes them, turned into the text format of COPY: values between tabs. A JSON text needs little to be
 * one of COPY, which knows most of the same escapes; numbers and times are as they were.
 */
export class CopyText {
  /** In order of the values; the last one's value is the same in every row. */
  readonly columns: readonly string[];
  readonly #heads: readonly Buffer[];
  readonly #types: readonly ColumnType[];
  readonly #out = new ByteWriter(64 * 1024);
  /** Where a value begins, and then where it ends. */
  #at = 0;
  /** Of the first backslash from there on, or further back. */
  #backslash = -1;

  /** @param last column after the table's own */
  constructor(definition: TableDefinition, last: string) {
    const columns = columnsInRow(definition);
    this.columns = [...columns.map(({ name }) => name), last];
    this.#heads = columns.map(({ name }) => Buffer.from(`${JSON.stringify(name)}:`));
    this.#types = columns.map(({ type }) => type);
  }

  /** @returns valid until the next call */
  of(lines: Buffer, last: string): Buffer {
    const out = this.#out;
    const tail = Buffer.from(`${last}\n`);
    out.length = 0;
    this.#backslash = -1;
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf(LINE_FEED, at);
      // Nothing grows beyond twice its text.
      out.room((end - at) * 2 + this.#types.length * 3 + tail.length);
      this.#row(lines, at, tail);
      at = end + 1;
    }
    return out.view();
  }

  /** The members of a row stand in the order of `columnsInRow`; those without a value are left out. */
  #row(lines: Buffer, start: number, tail: Buffer): void {
    const out = this.#out;
    const { buffer } = out;
    const heads = this.#heads;
    let o = out.length;
    let at = start + 1;
    for (let slot = 0; slot < heads.length; slot += 1) {
      const head = heads[slot] as Buffer;
      if (beginsWith(lines, at, head)) {
        at += head.length;
        this.#at = at;
        if (this.#types[slot] === 'json') o = this.#json(lines, buffer, o);
        else if (lines[at] === QUOTE) o = this.#string(lines, buffer, o);
        else o = this.#plain(lines, buffer, o);
        at = this.#at;
        if (lines[at] === COMMA) at += 1;
      } else {
        buffer[o] = BACKSLASH;
        buffer[o + 1] = NULL;
        o += 2;
      }
      buffer[o] = TAB;
      o += 1;
    }
    if (lines[at] !== CLOSE_BRACE || lines[at + 1] !== LINE_FEED)
      throw new Error('a row has a column that its table has not, or another order');
    out.length = copy(tail, 0, tail.length, buffer, o);
  }

  // Each of these copies the value at `#at` and sets that behind it: one pass over the bytes, as they are many.

  /** A number, or a word. */
  #plain(bytes: Buffer, out: Buffer, start: number): number {
    let i = this.#at;
    let o = start;
    for (let c = bytes[i] as number; c !== COMMA && c !== CLOSE_BRACE; c = bytes[(i += 1)] as number) {
      out[o] = c;
      o += 1;
    }
    this.#at = i;
    return o;
  }

  /** The inside of a string: COPY has JSON's escapes but for quotes and code units. */
  #string(bytes: Buffer, out: Buffer, start: number): number {
    let i = this.#at + 1;
    let o = start;
    for (let c = bytes[i] as number; c !== QUOTE; c = bytes[(i += 1)] as number) {
      if (c === BACKSLASH) {
        const escaped = bytes[(i += 1)] as number;
        if (escaped === U) {
          // Only control characters are written so, and none of those that part values and rows.
          out[o] = Number.parseInt(bytes.toString('latin1', i + 1, i + 5), 16);
          i += 4;
        } else if (escaped === QUOTE) {
          out[o] = QUOTE;
        } else {
          out[o] = BACKSLASH;
          out[(o += 1)] = escaped;
        }
      } else {
        out[o] = c;
      }
      o += 1;
    }
    this.#at = i + 1;
    return o;
  }

  /** Any value, as the JSON that it is: each of its backslashes is one of the text. */
  #json(bytes: Buffer, out: Buffer, start: number): number {
    const end = skipValue(bytes, this.#at, 1);
    let from = this.#at;
    let o = start;
    this.#at = end;
    while (this.#nextBackslash(bytes, from) < end) {
      const to = this.#backslash + 1;
      o += bytes.copy(out, o, from, to);
      out[o] = BACKSLASH;
      o += 1;
      from = to;
    }
    return o + bytes.copy(out, o, from, end);
  }

  /** Looked for once, as most values have none. */
  #nextBackslash(bytes: Buffer, from: number): number {
    if (this.#backslash < from) {
      const found = bytes.indexOf(BACKSLASH, from);
      this.#backslash = found === -1 ? bytes.length : found;
    }
    return this.#backslash;
  }
}

function beginsWith(bytes: Buffer, at: number, head: Buffer): boolean {
  for (let i = 0; i < head.length; i += 1) if (bytes[at + i] !== head[i]) return false;
  return true;
}
