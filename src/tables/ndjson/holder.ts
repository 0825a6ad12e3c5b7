import { ByteWriter } from '../../lib/byte-writer.ts';

const EMPTY = Buffer.alloc(0);

/** Keeps the pieces of something that lies across chunks, up to a length; what is longer is only counted. */
export class Holder {
  readonly #kept = new ByteWriter();
  readonly #longest: number;
  /** Bytes so far, kept or not. */
  length = 0;
  /** The last byte that is not white space. */
  lastByte = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  add(chunk: Buffer, from: number, to: number): void {
    if (to === from) return;
    this.length += to - from;
    this.#look(chunk, from, to);
    if (this.length <= this.#longest) this.#kept.append(chunk.subarray(from, to));
  }

  #look(chunk: Buffer, from: number, to: number): void {
    for (let i = to - 1; i >= from; i -= 1) {
      const c = chunk[i] as number;
      if (c <= 0x20) continue;
      this.lastByte = c;
      return;
    }
  }

  /** The whole of it, ended by a piece of a chunk; null when it is too long. Valid until the next `add`. */
  finish(chunk: Buffer, from: number, to: number): Buffer | null {
    if (this.length === 0) return to - from <= this.#longest ? chunk.subarray(from, to) : null;
    this.add(chunk, from, to);
    return this.length <= this.#longest ? this.#kept.view() : null;
  }

  drop(): void {
    this.length = 0;
    this.#kept.length = 0;
  }

  /** The whole of it when nothing follows. */
  rest(): Buffer | null {
    return this.finish(EMPTY, 0, 0);
  }
}

/** Where the bytes without white space around them begin and end. */
export function withoutSpace(bytes: Buffer): { readonly first: number; readonly last: number } {
  let last = bytes.length;
  while (last > 0 && (bytes[last - 1] as number) <= 0x20) last -= 1;
  let first = 0;
  while (first < last && (bytes[first] as number) <= 0x20) first += 1;
  return { first, last };
}

/** Levels whose kind of bracket is remembered; below them only their number is. Nothing so deep becomes a row. */
const REMEMBERED = 256;
const CASE = 0x20;
const OPEN = 0x7b;

/** The open brackets around a place in JSON text. */
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
