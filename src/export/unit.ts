import { LONGEST_LINE } from '../core/archive.ts';

/** Lines of the archive that are shaped together, in any thread. */
export interface Unit {
  /** The lines, each with its line feed; the buffer is longer. */
  readonly text: Uint8Array<ArrayBuffer>;
  /** Index of each line's line feed. */
  readonly ends: Uint32Array;
  /** Runs of lines of one file: index of the first line here, and its number in the file. */
  readonly stretches: readonly { readonly file: string; readonly from: number; readonly number: number }[];
}

/** Bytes of lines in a unit, unless one line is longer. */
export const UNIT = 8 * 1024 * 1024;
const FIRST_LINES = 1024;
const LINE_FEED = 10;

/** Makes units of whole lines from the bytes of files, which come in pieces of any size. */
export class UnitWriter {
  readonly #onProblem: (file: string, line: number, reason: string) => void;
  readonly #longest: number;
  #text: Uint8Array<ArrayBuffer> = new Uint8Array(UNIT);
  /** Bytes so far; after the last line feed there is the begin of a line. */
  #length = 0;
  #ends = new Uint32Array(FIRST_LINES);
  #lines = 0;
  #stretches: Unit['stretches'][number][] = [];
  #file = '';
  /** Number of the next line in the file, from 1. */
  #number = 1;
  #isStretch = false;
  /** The line that has begun is too long and is dropped. */
  #isTooLong = false;
  readonly #spare: Uint8Array<ArrayBuffer>[] = [];

  constructor(onProblem: (file: string, line: number, reason: string) => void, longest = LONGEST_LINE) {
    this.#onProblem = onProblem;
    this.#longest = longest;
  }

  /** It has no whole line. */
  get isEmpty(): boolean {
    return this.#lines === 0;
  }

  /** Bytes of memory that the unit takes. */
  get size(): number {
    return this.#text.length;
  }

  /** The bytes that follow are of this file. */
  begin(file: string): void {
    this.#file = file;
    this.#number = 1;
    this.#isStretch = false;
  }

  /** Takes bytes of the file. @returns how many it took; 0 when the unit has to be taken first */
  add(bytes: Buffer): number {
    if (this.#isTooLong) return this.#skip(bytes);
    if (this.#length === this.#text.length) {
      if (this.#lines > 0) return 0;
      if (this.#length > this.#longest) {
        this.#isTooLong = true;
        this.#length = 0;
        this.#move(0, UNIT);
        return this.#skip(bytes);
      }
      // Frees the smaller buffer at once; the garbage collector would let several of them gather.
      this.#text = new Uint8Array(this.#text.buffer.transfer(Math.min(this.#length * 2, this.#longest + 1)));
    }
    const taken = Math.min(bytes.length, this.#text.length - this.#length);
    this.#text.set(bytes.subarray(0, taken), this.#length);
    for (let at = bytes.indexOf(LINE_FEED); at !== -1 && at < taken; at = bytes.indexOf(LINE_FEED, at + 1))
      this.#endLine(this.#length + at);
    this.#length += taken;
    return taken;
  }

  /** Ends the file and drops a last line without an end. @returns number of its lines */
  end(isDamaged: boolean): number {
    if (isDamaged) this.#forgetLine();
    else if (this.#isTooLong) this.#leaveOut('the line is too long');
    else if (this.#length > this.#lineFrom) this.#leaveOut('the line has no end');
    return this.#number - 1;
  }

  /** Takes the whole lines so far. Their text is the caller's until `giveBack`. */
  take(): Unit {
    const [text, from] = [this.#text, this.#lineFrom];
    const unit = { text, ends: this.#ends.slice(0, this.#lines), stretches: this.#stretches };
    this.#move(from, Math.max(UNIT, this.#length - from));
    this.#lines = 0;
    this.#stretches = [];
    this.#isStretch = false;
    return unit;
  }

  giveBack(text: Uint8Array<ArrayBuffer>): void {
    if (text.length === UNIT) this.#spare.push(text);
    else text.buffer.transfer(0);
  }

  /** Index of the line that has no end yet. */
  get #lineFrom(): number {
    return this.#lines === 0 ? 0 : (this.#ends[this.#lines - 1] as number) + 1;
  }

  #endLine(at: number): void {
    if (!this.#isStretch) this.#stretches.push({ file: this.#file, from: this.#lines, number: this.#number });
    this.#isStretch = true;
    if (this.#lines === this.#ends.length)
      this.#ends = new Uint32Array(this.#ends.buffer.transfer(this.#ends.byteLength * 2));
    this.#ends[this.#lines] = at;
    this.#lines += 1;
    this.#number += 1;
  }

  /** Continues in another buffer, with the bytes from `from` on. */
  #move(from: number, size: number): void {
    const text = (size === UNIT ? this.#spare.pop() : undefined) ?? new Uint8Array(size);
    text.set(this.#text.subarray(from, this.#length));
    this.#text = text;
    this.#length -= from;
  }

  #skip(bytes: Buffer): number {
    const end = bytes.indexOf(LINE_FEED);
    if (end === -1) return bytes.length;
    this.#leaveOut('the line is too long');
    return end + 1;
  }

  #leaveOut(reason: string): void {
    this.#onProblem(this.#file, this.#number, reason);
    this.#forgetLine();
    this.#isStretch = false;
    this.#number += 1;
  }

  #forgetLine(): void {
    this.#length = this.#lineFrom;
    this.#isTooLong = false;
  }
}
