import { ByteWriter } from '../../lib/byte-writer.ts';
import { copy } from '../../lib/json-compact.ts';
import { BACKSLASH, beginsWith, CLOSE_BRACE, COMMA, QUOTE, skipValue } from '../../lib/json-text.ts';
import type { ColumnType, TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';

const LINE_FEED = 10;
const TAB = 9;
/** After a backslash: COPY's null. */
const NULL = 0x4e;
const U = 0x75;

/** Turns rows of the shaper, in JSON, into the text format of COPY: values between tabs, with nearly the same escapes. */
export class CopyText {
  /** In order of the values. The last column has the same value in every row. */
  readonly columns: readonly string[];
  readonly #heads: readonly Buffer[];
  readonly #types: readonly ColumnType[];
  readonly #out = new ByteWriter(64 * 1024);
  /** Offset of the current value; after it was copied, of its end. */
  #at = 0;
  /** Offset of the backslash that was last found. */
  #backslash = -1;

  /** @param last the column after the table's own */
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
      // No value takes more than twice its JSON.
      out.room((end - at) * 2 + this.#types.length * 3 + tail.length);
      this.#row(lines, at, tail);
      at = end + 1;
    }
    return out.view();
  }

  /** The members of a row are in the order of `columnsInRow`; those without a value are absent. */
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
      throw new Error('a row has a column that its table does not have, or another order');
    out.length = copy(tail, 0, tail.length, buffer, o);
  }

  // Each of these copies the value at `#at` and sets `#at` to its end, in one pass over the bytes.

  /** Copies a number, `true` or `false`. */
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

  /** Copies the inside of a string. COPY has the escapes of JSON except `\"` and `\u`. */
  #string(bytes: Buffer, out: Buffer, start: number): number {
    let i = this.#at + 1;
    let o = start;
    for (let c = bytes[i] as number; c !== QUOTE; c = bytes[(i += 1)] as number) {
      if (c === BACKSLASH) {
        const escaped = bytes[(i += 1)] as number;
        if (escaped === U) {
          // The shaper writes only control characters as code units, and never a tab or line feed.
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

  /** Copies any value as JSON, with its backslashes escaped. */
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

  /** Searches once for many values, as most have no backslash. */
  #nextBackslash(bytes: Buffer, from: number): number {
    if (this.#backslash < from) {
      const found = bytes.indexOf(BACKSLASH, from);
      this.#backslash = found === -1 ? bytes.length : found;
    }
    return this.#backslash;
  }
}
