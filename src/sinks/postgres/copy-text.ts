import { ByteWriter } from '../../lib/byte-writer.ts';
import { BACKSLASH, CLOSE_BRACE, COMMA, QUOTE, skipValue } from '../../lib/json-text.ts';
import { copy } from '../../lib/json-compact.ts';
import { columnsOf, type ColumnType, type TableDefinition } from '../../warehouse/definition.ts';

const LINE_FEED = 10;
const TAB = 9;
const NULL = Buffer.from(String.raw`\N`);
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

  /** @param last column after the table's own */
  constructor(definition: TableDefinition, last: string) {
    const columns = columnsOf(definition);
    this.columns = [...columns.map(({ name }) => name), last];
    this.#heads = columns.map(({ name }) => Buffer.from(`${JSON.stringify(name)}:`));
    this.#types = columns.map(({ type }) => type);
  }

  /** @returns valid until the next call */
  of(lines: Buffer, last: string): Buffer {
    const out = this.#out;
    const tail = Buffer.from(`${last}\n`);
    out.length = 0;
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf(LINE_FEED, at);
      // Nothing grows beyond twice its text.
      out.room((end - at) * 2 + this.#types.length * 3 + tail.length);
      this.#row(lines, at, tail);
      at = end + 1;
    }
    return out.view();
  }

  /** The members of a row stand in the order of the columns; those without a value are left out. */
  #row(lines: Buffer, start: number, tail: Buffer): void {
    const out = this.#out;
    const { buffer } = out;
    let o = out.length;
    let at = start + 1;
    for (const [slot, head] of this.#heads.entries()) {
      if (beginsWith(lines, at, head)) {
        const from = at + head.length;
        const to = skipValue(lines, from, 1);
        const type = this.#types[slot];
        if (lines[from] === QUOTE && type !== 'json') o = copyString(lines, from + 1, to - 1, buffer, o);
        else if (type === 'json') o = copyJson(lines, from, to, buffer, o);
        else o = copy(lines, from, to, buffer, o);
        at = lines[to] === COMMA ? to + 1 : to;
      } else {
        buffer[o] = NULL[0] as number;
        buffer[o + 1] = NULL[1] as number;
        o += 2;
      }
      buffer[o] = TAB;
      o += 1;
    }
    if (lines[at] !== CLOSE_BRACE || lines[at + 1] !== LINE_FEED)
      throw new Error('a row has a column that its table has not, or another order');
    out.length = copy(tail, 0, tail.length, buffer, o);
  }
}

function beginsWith(bytes: Buffer, at: number, head: Buffer): boolean {
  for (let i = 0; i < head.length; i += 1) if (bytes[at + i] !== head[i]) return false;
  return true;
}

/** The inside of a JSON string: COPY has its escapes but for quotes and code units. */
function copyString(bytes: Buffer, from: number, to: number, out: Buffer, at: number): number {
  let begin = from;
  let o = at;
  let i = nextEscape(bytes, from, to);
  while (i < to) {
    o = copy(bytes, begin, i, out, o);
    const escaped = bytes[i + 1];
    if (escaped === QUOTE) {
      out[o] = QUOTE;
      o += 1;
      begin = i + 2;
    } else if (escaped === U) {
      // Only control characters are written so, and none of those that part values and rows.
      out[o] = Number.parseInt(bytes.toString('latin1', i + 2, i + 6), 16);
      o += 1;
      begin = i + 6;
    } else {
      out[o] = BACKSLASH;
      out[o + 1] = escaped as number;
      o += 2;
      begin = i + 2;
    }
    i = nextEscape(bytes, begin, to);
  }
  return copy(bytes, begin, to, out, o);
}

/** JSON stays JSON: each backslash is one of the text. */
function copyJson(bytes: Buffer, from: number, to: number, out: Buffer, at: number): number {
  let begin = from;
  let o = at;
  for (let i = nextEscape(bytes, from, to); i < to; i = nextEscape(bytes, begin, to)) {
    o = copy(bytes, begin, i + 1, out, o);
    out[o] = BACKSLASH;
    o += 1;
    begin = i + 1;
  }
  return copy(bytes, begin, to, out, o);
}

function nextEscape(bytes: Buffer, from: number, to: number): number {
  for (let i = from; i < to; i += 1) if (bytes[i] === BACKSLASH) return i;
  return to;
}
