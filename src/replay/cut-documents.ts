import { LONGEST_LINE } from '../core/archive.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipValue,
} from '../lib/json-text.ts';

const MARK = Buffer.from('\uFEFF');
const SPACE = 0x20;
const LINE_FEED = Buffer.from('\n');

/**
 * Cuts the lines of one file into JSON documents: one or several a line, one over several lines, or the items of an array. It counts
 * brackets only; a damaged document is cut off where its line ends, or where the next line is a whole document.
 */
export class DocumentCutter {
  /** Lines of a document that has begun. */
  #begun: Buffer[] = [];
  #bytes = 0;
  /** Open brackets of that document, and open arrays around documents. */
  #depth = 0;
  #arrays = 0;

  get hasBegun(): boolean {
    return this.#begun.length > 0;
  }

  /** The documents that end in this line, without white space around them. */
  cut(line: Buffer): Buffer[] {
    const found = this.hasBegun && isWhole(line) ? [this.#end(line, 0, 0)] : [];
    let from = this.hasBegun ? 0 : -1;
    let at = startsWithMark(line) ? MARK.length : 0;
    const close = (to: number): void => {
      if (from >= 0) found.push(this.#end(line, from, to));
      from = -1;
    };
    for (; at < line.length; at += 1) {
      const c = line[at] as number;
      if (this.#depth === 0 && (c <= SPACE || c === COMMA)) close(at);
      else if (this.#depth === 0 && c === OPEN_BRACKET) {
        close(at);
        this.#arrays += 1;
      } else if (this.#depth === 0 && c === CLOSE_BRACKET && this.#arrays > 0) {
        close(at);
        this.#arrays -= 1;
      } else {
        if (this.#depth === 0 && c === OPEN_BRACE) close(at);
        if (from < 0) from = at;
        if (c === OPEN_BRACE || c === OPEN_BRACKET) this.#depth += 1;
        else if ((c === CLOSE_BRACE || c === CLOSE_BRACKET) && this.#depth > 0) {
          this.#depth -= 1;
          if (this.#depth === 0) close(at + 1);
        } else if (c === QUOTE) {
          at = endOfString(line, at + 1);
          // A string cannot continue in the next line.
          if (at === line.length) close(at);
        }
      }
    }
    this.#bytes += line.length;
    if (this.#depth === 0 || this.#bytes > LONGEST_LINE) close(line.length);
    else this.#begun.push(Buffer.concat([line.subarray(from), LINE_FEED]));
    return found;
  }

  /** What has begun and has no end; null at the end of a whole file. */
  end(): Buffer | null {
    return this.hasBegun || this.#arrays > 0 ? this.#end(Buffer.alloc(0), 0, 0) : null;
  }

  #end(line: Buffer, from: number, to: number): Buffer {
    const whole = Buffer.concat([...this.#begun, line.subarray(from, to)]);
    this.#begun = [];
    this.#bytes = 0;
    this.#depth = 0;
    return whole;
  }
}

/** The text without a byte order mark. */
export function withoutMark(text: Buffer): Buffer {
  return startsWithMark(text) ? text.subarray(MARK.length) : text;
}

function startsWithMark(text: Buffer): boolean {
  return text[0] === MARK[0] && text.subarray(0, MARK.length).equals(MARK);
}

/** The index of the quote that ends a string, or the length of the line. */
function endOfString(line: Buffer, from: number): number {
  let at = from;
  for (; at < line.length && line[at] !== QUOTE; at += 1) if (line[at] === BACKSLASH) at += 1;
  return Math.min(at, line.length);
}

/** Whether an object begins with the line and ends in it. */
function isWhole(line: Buffer): boolean {
  if (line[0] !== OPEN_BRACE) return false;
  try {
    return skipValue(line, 0, 1) > 0;
  } catch {
    return false;
  }
}
