import { ByteWriter } from '../../lib/byte-writer.ts';

/** The bytes of an element that lies across chunks, up to a length; what is longer is only counted. */
export class PendingElement {
  readonly #kept = new ByteWriter();
  readonly #longest: number;
  #length = 0;
  /** The last byte that is not white space. */
  lastByte = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  add(chunk: Buffer, from: number, to: number): void {
    if (to === from) return;
    this.#length += to - from;
    this.lastByte = chunk.subarray(from, to).findLast((c) => c > 0x20) ?? this.lastByte;
    if (this.#length <= this.#longest) this.#kept.append(chunk.subarray(from, to));
  }

  /** The whole of it, ended by a piece of a chunk; null when it is too long. Valid until the next `add`. */
  whole(chunk: Buffer, from: number, to: number): Buffer | null {
    if (this.#length === 0) return to - from <= this.#longest ? chunk.subarray(from, to) : null;
    this.add(chunk, from, to);
    return this.#length <= this.#longest ? this.#kept.view() : null;
  }

  clear(): void {
    this.#length = 0;
    this.#kept.length = 0;
  }
}

/** Levels whose kind of bracket is remembered; below them only their number is. Nothing so deep becomes a row. */
const REMEMBERED = 256;
const CASE = 0x20;
const OPEN = 0x7b;

/** The brackets that are open in JSON text. */
export class Brackets {
  readonly #kinds = new Uint8Array(REMEMBERED);
  depth = 0;

  open(bracket: number): void {
    if (this.depth < REMEMBERED) this.#kinds[this.depth] = bracket;
    this.depth += 1;
  }

  /** False when this is not the bracket that closes the innermost open one. */
  close(bracket: number): boolean {
    if (this.depth === 0) return false;
    this.depth -= 1;
    // Each closing bracket of ASCII is its opening one plus 2.
    return this.depth >= REMEMBERED || this.#kinds[this.depth] === bracket - 2;
  }
}

/** `{` or `[`, which differ in one bit. */
export function opens(byte: number): boolean {
  return (byte | CASE) === OPEN;
}

/** `}` or `]`. */
export function closes(byte: number): boolean {
  return (byte | CASE) === OPEN + 2;
}

/** Bytes of a member's name that are looked at; containers have short ones. */
const LONGEST_NAME = 64;
/** Bytes that are kept of the value of a member beside the container. */
const LONGEST_VALUE = 4096;

/** The member that is being read at the top level of an object: its name, and the beginning of its value. */
export class TopMember {
  name = '';
  /** The last text, which is a name when a colon follows. */
  #text: number[] = [];
  #value: number[] = [];
  readonly #onEnd: ((name: string, value: string) => void) | undefined;

  /** @param onEnd called with each member that has a value; values are kept only if it is there */
  constructor(onEnd?: (name: string, value: string) => void) {
    this.#onEnd = onEnd;
  }

  addToValue(byte: number): void {
    if (this.#onEnd !== undefined && this.name !== '' && this.#value.length < LONGEST_VALUE)
      this.#value.push(byte);
  }

  beginText(): void {
    this.#text = [];
  }

  addToText(byte: number): void {
    if (this.#text.length < LONGEST_NAME) this.#text.push(byte);
  }

  /** A colon follows the text. */
  nameIt(): void {
    this.name = Buffer.from(this.#text.slice(0, -1)).toString();
  }

  /** The last byte of the value was the comma or the bracket after it. */
  end(): void {
    const value = Buffer.from(this.#value.slice(0, -1)).toString().trim();
    if (value !== '') this.#onEnd?.(this.name, value);
    this.name = '';
    this.#value = [];
  }
}
