/** Lines of the archive that are shaped together, whoever does it: the same lines give the same rows. */
export interface Unit {
  /** The lines, one after another, without their line breaks; longer than they are. */
  readonly text: Uint8Array<ArrayBuffer>;
  /** Where each line ends. */
  readonly ends: Uint32Array;
  /** The number of each line in its file. */
  readonly numbers: Uint32Array;
  /** Files, relative to the archive, each with the index of its first line. */
  readonly files: readonly { readonly file: string; readonly from: number }[];
}

/** Bytes of lines in a unit, unless one line is longer. */
export const UNIT = 8 * 1024 * 1024;

const FIRST_LINES = 1024;

/** Gathers lines to units. */
export class UnitWriter {
  #text: Uint8Array<ArrayBuffer> | null = null;
  #length = 0;
  #ends = new Uint32Array(FIRST_LINES);
  #numbers = new Uint32Array(FIRST_LINES);
  #lines = 0;
  #files: { file: string; from: number }[] = [];
  readonly #spare: Uint8Array<ArrayBuffer>[] = [];

  get isEmpty(): boolean {
    return this.#lines === 0;
  }

  /** False when the unit has to be taken first. */
  fits(line: Uint8Array): boolean {
    return this.#lines === 0 || this.#length + line.length <= UNIT;
  }

  add(file: string, number: number, line: Uint8Array): void {
    if (this.#files.at(-1)?.file !== file) this.#files.push({ file, from: this.#lines });
    if (this.#lines === this.#ends.length) {
      this.#ends = grown(this.#ends);
      this.#numbers = grown(this.#numbers);
    }
    const text = this.#room(line.length);
    text.set(line, this.#length);
    this.#length += line.length;
    this.#ends[this.#lines] = this.#length;
    this.#numbers[this.#lines] = number;
    this.#lines += 1;
  }

  /** What has been gathered; its text is the caller's until it is given back. */
  take(): Unit {
    const unit = {
      text: this.#room(0),
      ends: this.#ends.slice(0, this.#lines),
      numbers: this.#numbers.slice(0, this.#lines),
      files: this.#files,
    };
    this.#text = null;
    this.#length = 0;
    this.#lines = 0;
    this.#files = [];
    return unit;
  }

  giveBack(text: Uint8Array<ArrayBuffer>): void {
    if (text.length === UNIT) this.#spare.push(text);
  }

  #room(bytes: number): Uint8Array<ArrayBuffer> {
    this.#text ??= bytes > UNIT ? new Uint8Array(bytes) : (this.#spare.pop() ?? new Uint8Array(UNIT));
    return this.#text;
  }
}

function grown(numbers: Uint32Array): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(numbers.length * 2);
  larger.set(numbers);
  return larger;
}
