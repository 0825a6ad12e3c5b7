import {
  BACKSLASH,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  JsonFault,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipValue,
  skipWhite,
} from '../../lib/json-text.ts';
import type { RejectCode } from '../shape/reject.ts';
import type { DamagedText } from './input.ts';
import { Brackets, closes, opens, PendingElement, TopMember } from './scanner-state.ts';

const LINE_FEED = 10;
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf);
const EMPTY = Buffer.alloc(0);

export interface ElementOptions {
  /** Members of a top-level object whose array holds the elements. */
  readonly containers: readonly string[];
  /** Member of a top-level object whose value is an object of arrays that hold the elements. */
  readonly groups?: string | undefined;
  /** Bytes above which an element is rejected. */
  readonly longest: number;
  /** True when the text is known to be NDJSON; otherwise its first line shows it. */
  readonly lines?: boolean;
  /**
   * Called for an item of an array that is an object, before the scanner looks for its end, so that valid items are stepped over
   * once, not twice. `at` is its index in the chunk, `offset` counts bytes of text.
   * @returns index of the comma or bracket after it; 0 when it is not valid or not all in the chunk: then it is an element
   */
  take?(at: number, offset: number): number;
  /** The document has a container, or groups, of this name. */
  onList?(name: string): void;
  /** A top-level object has ended. */
  onDocument?(): void;
  /** A member beside a container, with the beginning of its value: of an object or a list only the bracket. */
  onMember?(name: string, value: string): void;
  /** An element without white space around it: a view that is valid until the call returns. `offset` counts bytes of text. */
  onElement(bytes: Buffer, offset: number): void;
  /** Something that is no element. */
  onFault(code: RejectCode, reason: string, offset: number, length: number): void;
}

/**
 * Finds the elements of a bulk JSON document without parsing it: only quotes and brackets are looked at. Takes the text in
 * chunks of any size, and keeps at most one element, which lies across them.
 *
 * The text is a sequence of values. Each is an array, whose items are the elements; or an object with a container
 * (`{"meals":[…],"total":2}`), whose items are the elements and whose other members are passed over; or any other object,
 * which is an element itself. When the first value is such an object on a line of its own, the text is NDJSON: every line is an
 * element, and an invalid line is rejected alone. In a document nothing after a mismatched bracket can be trusted.
 *
 * Modes: `between` values → `array` (in an array of elements) or `members` (in a top-level object), and back; `lines` and
 * `broken` are final. `push` alone changes the mode.
 */
export class ElementScanner {
  readonly #options: ElementOptions;
  readonly #pending: PendingElement;
  readonly #brackets = new Brackets();
  readonly #member: TopMember;
  #mode: 'between' | 'array' | 'members' | 'lines' | 'broken';
  /** Bytes of text in front of the chunk. */
  #before = 0;
  /** Offset of the element being read; -1 between elements. */
  #start = -1;
  /** The chunk ended inside a string. */
  #inString = false;
  /** Bytes of the next chunk that an escape at the end of the last one covers. */
  #covered = 0;
  /** The last byte between elements of an array was a comma: an element has to follow. */
  #comma = false;
  /** Brackets around an element: 1 in the container of an object, 2 in groups. */
  #outside: 0 | 1 | 2 = 0;
  #inGroups = false;
  /** The last top-level object was an element and had no line break inside. */
  #onOneLine = false;
  #broken = { offset: 0, reason: '' };

  constructor(options: ElementOptions) {
    this.#options = options;
    this.#pending = new PendingElement(options.longest);
    this.#member = new TopMember(options.onMember);
    this.#mode = options.lines === true ? 'lines' : 'between';
  }

  /** Takes the next bytes of the text; the chunk may be reused when it returns. */
  push(chunk: Buffer): void {
    let at = this.#covered;
    this.#covered = Math.max(0, at - chunk.length);
    while (at < chunk.length && this.#mode !== 'broken') {
      if (this.#mode === 'array') at = this.#inArray(chunk, at);
      else if (this.#mode === 'members') at = this.#inMembers(chunk, at);
      else if (this.#mode === 'between') at = this.#between(chunk, at);
      else at = this.#inLines(chunk, at);
    }
    if (at > chunk.length) this.#covered = at - chunk.length;
    if (this.#start >= 0) this.#pending.add(chunk, Math.max(0, this.#start - this.#before), chunk.length);
    this.#before += chunk.length;
  }

  /** Ends the text. @param damage why it is not complete; the elements that were found are valid */
  end(damage: DamagedText | null = null): void {
    const { onFault } = this.#options;
    if (this.#mode === 'broken') {
      const { offset, reason } = this.#broken;
      onFault('broken', `${reason}; nothing after it can be read`, offset, this.#before - offset);
      return;
    }
    if (this.#isWhole() && (damage === null || this.#mode === 'array'))
      this.#element(this.#pending.whole(EMPTY, 0, 0), this.#before);
    const isCut = this.#mode === 'array' || this.#mode === 'members';
    if (damage === null && !isCut) return;
    const offset = this.#start >= 0 ? this.#start : this.#before;
    const reason = damage?.message ?? 'the document ends before it is complete';
    onFault(damage?.code ?? 'cut', reason, offset, this.#before - offset);
  }

  /** The element being read may end here: the last line, or an item with its brackets closed. */
  #isWhole(): boolean {
    if (this.#start < 0 || this.#mode === 'members') return false;
    if (this.#mode === 'lines') return true;
    return !this.#inString && this.#brackets.depth === this.#outside && closes(this.#pending.lastByte);
  }

  #between(chunk: Buffer, at: number): number {
    const c = chunk[at] as number;
    if (c === LINE_FEED && this.#onOneLine) this.#mode = 'lines';
    if (c <= 0x20 || c === BYTE_ORDER_MARK[this.#before + at]) return at + 1;
    this.#outside = 0;
    this.#inGroups = false;
    this.#onOneLine = c === OPEN_BRACE;
    if (c === OPEN_BRACKET) {
      this.#enterArray();
    } else if (c === OPEN_BRACE) {
      this.#mode = 'members';
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
    this.#pending.clear();
  }

  #enterGroups(name: string): void {
    this.#inGroups = true;
    this.#outside = 1;
    this.#start = -1;
    this.#onOneLine = false;
    this.#pending.clear();
    this.#options.onList?.(name);
  }

  /** In an array of elements; continues until the chunk or the array ends. */
  #inArray(chunk: Buffer, from: number): number {
    const brackets = this.#brackets;
    const outside = this.#outside;
    let i = this.#inString ? this.#stringEnd(chunk, from) : from;
    if (brackets.depth > outside) i = this.#inElement(chunk, i, outside);
    for (; i < chunk.length && this.#mode === 'array'; i += 1) {
      const c = chunk[i] as number;
      if (c <= 0x20) continue;
      if (this.#start < 0 && (c !== CLOSE_BRACKET || this.#comma)) this.#start = this.#before + i;
      if (c === QUOTE) {
        i = this.#stringEnd(chunk, i + 1) - 1;
      } else if (opens(c)) {
        const next = c === OPEN_BRACE ? this.#take(chunk, i) : 0;
        if (next === 0) brackets.open(c);
        i = (next === 0 ? this.#inElement(chunk, i + 1, outside) : next) - 1;
      } else if (c === COMMA) {
        this.#finish(chunk, i);
        this.#comma = true;
      } else if (c === CLOSE_BRACKET) {
        if (this.#start >= 0) this.#finish(chunk, i);
        this.#mode = outside > 0 ? 'members' : 'between';
      } else if (closes(c)) {
        return this.#break(chunk, i, 'a } without a {');
      }
    }
    return i;
  }

  /** Offers the item to `take`. Returns the index after it, and after its comma; 0 when it is not taken. */
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
    let i = from;
    for (; i < length; i += 1) {
      const c = chunk[i] as number;
      if (c === QUOTE) {
        i = this.#stringEnd(chunk, i + 1) - 1;
      } else if (opens(c)) {
        brackets.open(c);
      } else if (closes(c)) {
        if (!brackets.close(c)) return this.#break(chunk, i, 'mismatched bracket');
        if (brackets.depth === outside) return i + 1;
      }
    }
    return i;
  }

  /** The index after the quote that ends the string; past the chunk when it does not end there. */
  #stringEnd(chunk: Buffer, from: number): number {
    let i = from;
    while (i < chunk.length && chunk[i] !== QUOTE) i += chunk[i] === BACKSLASH ? 2 : 1;
    this.#inString = i >= chunk.length;
    return this.#inString ? i : i + 1;
  }

  /** In a top-level object that is an element, until a container shows up in it. */
  #inMembers(chunk: Buffer, from: number): number {
    const [brackets, member] = [this.#brackets, this.#member];
    let i = from;
    while (i < chunk.length) {
      const c = chunk[i] as number;
      const isTop = brackets.depth === 1;
      if (isTop) member.addToValue(c);
      if (this.#inString) {
        if (isTop) member.addToText(c);
        if (c === QUOTE) this.#inString = false;
        i += c === BACKSLASH ? 2 : 1;
        continue;
      }
      i += 1;
      if (c === LINE_FEED) this.#onOneLine = false;
      if (c === QUOTE) {
        this.#inString = true;
        member.beginText();
      } else if (opens(c)) {
        if (c === OPEN_BRACKET && isTop && this.#options.containers.includes(member.name)) {
          this.#outside = 1;
          this.#onOneLine = false;
          this.#options.onList?.(member.name);
          this.#enterArray();
          return i;
        }
        if (c === OPEN_BRACKET && this.#inGroups && brackets.depth === 2) {
          this.#outside = 2;
          this.#enterArray();
          return i;
        }
        if (isTop && c === OPEN_BRACE && member.name === this.#options.groups) this.#enterGroups(member.name);
        brackets.open(c);
      } else if (closes(c)) {
        if (!brackets.close(c)) return this.#break(chunk, i - 1, 'mismatched bracket');
        this.#inGroups &&= brackets.depth > 1;
        if (!isTop) continue;
        member.end();
        this.#options.onDocument?.();
        if (this.#outside === 0) this.#finish(chunk, i);
        this.#mode = 'between';
        return i;
      } else if (isTop && c === COLON) {
        member.nameIt();
      } else if (isTop && c === COMMA) {
        member.end();
      }
    }
    return i;
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
    this.#element(this.#pending.whole(chunk, from, to), this.#before + to);
  }

  /** @param bytes null when they are too many */
  #element(bytes: Buffer | null, end: number): void {
    const { onElement, onFault, longest } = this.#options;
    const offset = this.#start;
    this.#start = -1;
    if (bytes === null) {
      onFault('too_long', `longer than ${longest} bytes`, offset, end - offset);
    } else {
      const start = offset === 0 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
      const first = bytes.findIndex((c, at) => c > 0x20 && at >= start);
      const last = bytes.findLastIndex((c) => c > 0x20);
      if (first >= 0 && this.#mode !== 'lines') onElement(bytes.subarray(first, last + 1), offset + first);
      else if (first >= 0)
        for (const [from, to] of documentsOn(bytes, first, last + 1))
          onElement(bytes.subarray(from, to), offset + from);
      else if (this.#mode !== 'lines') onFault('not_json', 'nothing between two commas', offset, 0);
    }
    this.#pending.clear();
  }

  #break(chunk: Buffer, at: number, reason: string): number {
    const c = chunk[at] as number;
    const shown = c > 0x20 && c < 0x7f ? ` ('${String.fromCharCode(c)}')` : '';
    const offset = this.#before + at;
    this.#mode = 'broken';
    const from = this.#start >= 0 ? this.#start : offset;
    this.#broken = { offset: from, reason: `${reason}${shown}, at byte ${offset}` };
    this.#start = -1;
    this.#pending.clear();
    return chunk.length;
  }
}

/** Where the documents on a line stand: most lines have one. After a fault the rest of the line is one. */
function documentsOn(line: Buffer, from: number, to: number): readonly (readonly [number, number])[] {
  const documents: [number, number][] = [];
  let at = from;
  try {
    while (at < to && (line.indexOf('}{', at) >= 0 || line.indexOf('} {', at) >= 0)) {
      const end = skipValue(line, at, 1);
      documents.push([at, end]);
      at = skipWhite(line, end);
    }
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
  }
  return at < to ? [...documents, [at, to]] : documents;
}
