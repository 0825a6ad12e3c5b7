import {
  BACKSLASH,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../lib/json-text.ts';
import type { RejectCode } from '../shape/reject.ts';
import { Brackets, closes, opens, Holder, withoutSpace } from './holder.ts';
import type { Damage } from './input.ts';

const LINE_FEED = 10;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Bytes of a member's name that are looked at; containers have short ones. */
const LONGEST_NAME = 64;
/** Bytes of the value of a member beside the container that are kept. */
const LONGEST_VALUE = 256;

export interface ElementOptions {
  /** Members of a top-level object whose array holds the elements. */
  readonly containers: readonly string[];
  /** Bytes above which an element is not kept. */
  readonly longest: number;
  /** True when the text is known to be NDJSON; otherwise its first line shows it. */
  readonly lines?: boolean;
  /**
   * Takes the object at this index of the chunk, an item of an array, if it is well and the chunk holds all of it. Asked
   * before the scanner looks for the item's end, so that good ones are stepped over once, not twice. `offset` counts bytes of text.
   * @returns index of the comma or bracket after it; 0 when it is not taken, and then it becomes an element
   */
  take?(at: number, offset: number): number;
  /** The document has a container of this name. */
  onList?(name: string): void;
  /** A member beside a container, with the beginning of its value: of an object or a list only the bracket. */
  onMember?(name: string, value: string): void;
  /** An element without white space around it: a view that is valid until the call returns. `offset` counts bytes of text. */
  onElement(bytes: Buffer, offset: number): void;
  /** Something that is no element. */
  onFault(code: RejectCode, reason: string, offset: number, length: number): void;
}

/**
 * Finds the elements of a bulk JSON document without parsing it: only quotes and brackets are looked at. Takes the text in
 * chunks of any size, and keeps no more of it than one element that lies across them.
 *
 * The text is a sequence of values. Each is an array, whose items are the elements; or an object with a container
 * (`{"meals":[…],"total":2}`), whose items are the elements and whose other members are passed over; or any other object,
 * which is an element itself. When the first value is one of these, on a line of its own, the text is NDJSON: every line is
 * an element, and a broken line is lost alone. In a document nothing after mismatched bracket can be trusted.
 *
 * Modes: `between` values → `array` (in an array of elements) or `members` (in a top-level object), and back; `lines` and
 * `broken` are final. `push` alone changes the mode. All modes are in this file: they share one place in the text.
 */
export class ElementScanner {
  readonly #options: ElementOptions;
  readonly #held: Holder;
  readonly #brackets = new Brackets();
  #mode: 'between' | 'array' | 'members' | 'lines' | 'broken';
  /** Bytes of text in front of the chunk. */
  #before = 0;
  /** Offset of the element being read; -1 between elements. */
  #start = -1;
  /** Inside a string, after a chunk's end. */
  #inString = false;
  /** Bytes of the next chunk that an escape at the end of the last one covers. */
  #covered = 0;
  /** In an array: an element has to follow, for there was a comma. */
  #comma = false;
  /** In a top-level object: the last string at its own level, which may be a name, and the name before a colon. */
  #string: number[] = [];
  #name = '';
  /** The bytes of that member's value at its own level. */
  #value: number[] = [];
  /** The top-level object has a container, or the array is one. */
  #wrapped = false;
  /** The last top-level object was an element and had no line break inside. */
  #onOneLine = false;
  #broken = { offset: 0, reason: '' };

  constructor(options: ElementOptions) {
    this.#options = options;
    this.#held = new Holder(options.longest);
    this.#mode = options.lines === true ? 'lines' : 'between';
  }

  /** Takes the next bytes of the text; the chunk may be reused when it returns. */
  push(chunk: Buffer): void {
    let at = this.#covered;
    this.#covered = Math.max(0, at - chunk.length);
    while (at < chunk.length) {
      if (this.#mode === 'array') at = this.#inArray(chunk, at);
      else if (this.#mode === 'members') at = this.#inMembers(chunk, at);
      else if (this.#mode === 'between') at = this.#between(chunk, at);
      else if (this.#mode === 'lines') at = this.#inLines(chunk, at);
      else break;
    }
    if (at > chunk.length) this.#covered = at - chunk.length;
    if (this.#start >= 0) this.#held.add(chunk, Math.max(0, this.#start - this.#before), chunk.length);
    this.#before += chunk.length;
  }

  /**
   * There is no more text.
   * @param damage why, when that was not to be; what has been found stands
   */
  end(damage: Damage | null = null): void {
    const { onFault } = this.#options;
    if (this.#mode === 'broken') {
      const { offset, reason } = this.#broken;
      onFault('broken', `${reason}; nothing after it can be read`, offset, this.#before - offset);
      return;
    }
    if (this.#isWhole() && (damage === null || this.#mode === 'array'))
      this.#element(this.#held.rest(), this.#before);
    const cut = this.#mode === 'array' || this.#mode === 'members';
    if (damage === null && !cut) return;
    const offset = this.#start >= 0 ? this.#start : this.#before;
    const { code, reason } = damage ?? { code: 'cut', reason: 'the document ends before it is complete' };
    onFault(code, reason, offset, this.#before - offset);
  }

  /** The element being read may end here: the last line, or an item with its brackets closed. */
  #isWhole(): boolean {
    if (this.#start < 0 || this.#mode === 'members') return false;
    const last = this.#held.lastByte;
    return (
      this.#mode === 'lines' || (!this.#inString && this.#brackets.depth === this.#outside && closes(last))
    );
  }

  get #outside(): number {
    return this.#wrapped ? 1 : 0;
  }

  #between(chunk: Buffer, at: number): number {
    const c = chunk[at] as number;
    if (c === LINE_FEED && this.#onOneLine) this.#mode = 'lines';
    if (c <= 0x20 || c === BYTE_ORDER_MARK[this.#before + at]) return at + 1;
    this.#wrapped = false;
    this.#onOneLine = false;
    if (c === OPEN_BRACKET) {
      this.#enterArray();
    } else if (c === OPEN_BRACE) {
      this.#mode = 'members';
      this.#onOneLine = true;
      this.#start = this.#before + at;
      this.#brackets.open(c);
    } else {
      return this.#break(chunk, at, 'neither an object nor an array');
    }
    return at + 1;
  }

  #enterArray(): void {
    this.#mode = 'array';
    this.#start = -1;
    this.#comma = false;
    this.#held.drop();
  }

  /** In an array of elements; continues until the chunk or the array ends. */
  #inArray(chunk: Buffer, from: number): number {
    const brackets = this.#brackets;
    const outside = this.#outside;
    const { length } = chunk;
    let i = from;
    if (this.#inString) i = this.#stringEnd(chunk, i);
    for (; i < length; i += 1) {
      const c = chunk[i] as number;
      if (c <= 0x20) continue;
      if (this.#start < 0 && c !== CLOSE_BRACKET) this.#start = this.#before + i;
      if (c === QUOTE) {
        i = this.#stringEnd(chunk, i + 1) - 1;
      } else if (opens(c)) {
        const next = c === OPEN_BRACE ? this.#take(chunk, i) : 0;
        if (next > 0) {
          i = next - 1;
          continue;
        }
        brackets.open(c);
        i = this.#inElement(chunk, i + 1, outside) - 1;
        if (this.#mode !== 'array') return i + 1;
      } else if (brackets.depth > outside) {
        i = this.#inElement(chunk, i, outside) - 1;
        if (this.#mode !== 'array') return i + 1;
      } else if (c === COMMA) {
        this.#finish(chunk, i);
        this.#comma = true;
      } else if (c === CLOSE_BRACKET) {
        if (this.#start >= 0 || this.#comma) {
          if (this.#start < 0) this.#start = this.#before + i;
          this.#finish(chunk, i);
        }
        this.#mode = this.#wrapped ? 'members' : 'between';
        return i + 1;
      } else if (closes(c)) {
        return this.#break(chunk, i, 'a } without a {');
      }
    }
    return i;
  }

  /** Offers the item to whoever can read it as it stands. Returns the index of what comes next; 0 when it is not taken. */
  #take(chunk: Buffer, at: number): number {
    const offset = this.#before + at;
    if (this.#start !== offset || this.#options.take === undefined) return 0;
    const end = this.#options.take(at, offset);
    if (end === 0) return 0;
    this.#start = -1;
    this.#comma = chunk[end] === COMMA;
    return this.#comma ? end + 1 : end;
  }

  /** Inside the brackets of an element; continues until the chunk or the outermost bracket ends. The hot loop. */
  #inElement(chunk: Buffer, from: number, outside: number): number {
    const brackets = this.#brackets;
    const { length } = chunk;
    for (let i = from; i < length; i += 1) {
      const c = chunk[i] as number;
      if (c === QUOTE) {
        i += 1;
        while (i < length && chunk[i] !== QUOTE) i += chunk[i] === BACKSLASH ? 2 : 1;
        if (i >= length) {
          this.#inString = true;
          return i;
        }
      } else if (opens(c)) {
        brackets.open(c);
      } else if (closes(c)) {
        if (!brackets.close(c)) return this.#break(chunk, i, 'mismatched bracket');
        if (brackets.depth === outside) return i + 1;
      }
    }
    return length;
  }

  /** The index after the quote that ends the string; past the chunk when it does not end there. */
  #stringEnd(chunk: Buffer, from: number): number {
    let i = from;
    this.#inString = true;
    while (i < chunk.length) {
      const c = chunk[i] as number;
      if (c === QUOTE) {
        this.#inString = false;
        return i + 1;
      }
      i += c === BACKSLASH ? 2 : 1;
    }
    return i;
  }

  /** In a top-level object that is an element, until a container shows up in it. */
  #inMembers(chunk: Buffer, from: number): number {
    const brackets = this.#brackets;
    const keeps = this.#options.onMember !== undefined;
    let i = from;
    while (i < chunk.length) {
      const c = chunk[i] as number;
      if (keeps && brackets.depth === 1 && this.#name !== '' && this.#value.length < LONGEST_VALUE)
        this.#value.push(c);
      if (this.#inString) {
        if (brackets.depth === 1 && this.#string.length < LONGEST_NAME) this.#string.push(c);
        if (c === QUOTE) this.#inString = false;
        i += c === BACKSLASH ? 2 : 1;
        continue;
      }
      i += 1;
      if (c === LINE_FEED) this.#onOneLine = false;
      if (c === QUOTE) {
        this.#inString = true;
        this.#string = [];
      } else if (opens(c)) {
        if (c === OPEN_BRACKET && brackets.depth === 1 && this.#options.containers.includes(this.#name)) {
          this.#wrapped = true;
          this.#onOneLine = false;
          this.#options.onList?.(this.#name);
          this.#enterArray();
          return i;
        }
        brackets.open(c);
      } else if (closes(c)) {
        if (!brackets.close(c)) return this.#break(chunk, i - 1, 'mismatched bracket');
        if (brackets.depth > 0) continue;
        this.#endMember();
        if (!this.#wrapped) this.#finish(chunk, i);
        this.#mode = 'between';
        return i;
      } else if (brackets.depth === 1 && c === COLON) {
        this.#name = Buffer.from(this.#string.slice(0, -1)).toString();
      } else if (brackets.depth === 1 && c === COMMA) {
        this.#endMember();
      }
    }
    return i;
  }

  /** The member's value, less the comma or the bracket behind it. */
  #endMember(): void {
    const value = Buffer.from(this.#value.slice(0, -1)).toString().trim();
    if (value !== '') this.#options.onMember?.(this.#name, value);
    this.#name = '';
    this.#value = [];
  }

  #inLines(chunk: Buffer, from: number): number {
    const at = chunk.indexOf(LINE_FEED, from);
    if (this.#start < 0) this.#start = this.#before + from;
    if (at === -1) return chunk.length;
    this.#finish(chunk, at);
    return at + 1;
  }

  /** The element ends in front of `to`. */
  #finish(chunk: Buffer, to: number): void {
    const from = Math.max(0, this.#start - this.#before);
    this.#element(this.#held.finish(chunk, from, to), this.#before + to);
  }

  /** @param bytes null when they are too many */
  #element(bytes: Buffer | null, end: number): void {
    const { onElement, onFault, longest } = this.#options;
    const offset = this.#start;
    this.#start = -1;
    if (bytes === null) {
      onFault('too_long', `longer than ${longest} bytes`, offset, end - offset);
    } else {
      const { first, last } = withoutSpace(bytes);
      if (last > first) onElement(bytes.subarray(first, last), offset + first);
      else if (this.#mode !== 'lines') onFault('not_json', 'nothing between two commas', offset, 0);
    }
    this.#held.drop();
  }

  #break(chunk: Buffer, at: number, reason: string): number {
    const c = chunk[at] as number;
    const shown = c > 0x20 && c < 0x7f ? ` ('${String.fromCharCode(c)}')` : '';
    const offset = this.#before + at;
    this.#mode = 'broken';
    this.#broken = {
      offset: this.#start >= 0 ? this.#start : offset,
      reason: `${reason}${shown}, at byte ${offset}`,
    };
    this.#start = -1;
    this.#held.drop();
    return chunk.length;
  }
}
