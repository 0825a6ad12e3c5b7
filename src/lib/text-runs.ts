import type { SpillFile } from './spill-file.ts';
import { compareTexts, HEAD, sizeOf, type Texts } from './text-records.ts';

/** Of one run, read at a time: a multiple of four. */
const CHUNK = 32 * 1024;

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The records of several sorted runs as one: records of one text come in the order of their runs. */
export class TextRuns {
  /** A heap: the run at `n` is not before the one at `(n - 1) / 2`. */
  readonly #heap: RunCursor[];
  #first: RunCursor | null = null;
  /** Where in `current` the record begins. */
  at = 0;

  constructor(file: SpillFile, runs: readonly Span[]) {
    this.#heap = runs.map((run, order) => new RunCursor(file, run, order)).filter((run) => run.next());
    for (let n = this.#heap.length >>> 1; n >= 0; n -= 1) this.#sink(n);
  }

  /** Has the record that `next` came to; it stays as it is when the next one comes. */
  get current(): Texts {
    return this.#first?.texts ?? NOTHING;
  }

  /** False at the end. */
  next(): boolean {
    if (this.#first !== null) {
      if (!this.#first.next()) {
        const last = this.#heap.pop();
        if (last !== undefined && this.#heap.length > 0) this.#heap[0] = last;
      }
      this.#sink(0);
    }
    this.#first = this.#heap[0] ?? null;
    this.at = this.#first?.at ?? 0;
    return this.#first !== null;
  }

  /** Moves a run down to where it belongs. */
  #sink(from: number): void {
    const heap = this.#heap;
    const run = heap[from];
    if (run === undefined) return;
    let place = from;
    for (;;) {
      const left = heap[2 * place + 1];
      if (left === undefined) break;
      const right = heap[2 * place + 2];
      const isRight = right !== undefined && right.isBefore(left);
      const least = isRight ? right : left;
      if (!least.isBefore(run)) break;
      heap[place] = least;
      place = 2 * place + (isRight ? 2 : 1);
    }
    heap[place] = run;
  }
}

const NOTHING: Texts = { words: new Uint32Array(0), bytes: Buffer.alloc(0) };

/** Goes through one run. */
class RunCursor {
  texts = NOTHING;
  at = 0;
  readonly #file: SpillFile;
  readonly #order: number;
  readonly #to: number;
  /** What of the run comes after the bytes that are held. */
  #position: number;
  #next = 0;

  constructor(file: SpillFile, { from, to }: Span, order: number) {
    this.#file = file;
    this.#order = order;
    this.#position = from;
    this.#to = to;
  }

  isBefore(other: RunCursor): boolean {
    const order = compareTexts(this.texts, this.at, other.texts, other.at);
    return order === 0 ? this.#order < other.#order : order < 0;
  }

  /** False at the end of the run. */
  next(): boolean {
    const left = this.texts.bytes.length - this.#next;
    const size = left < HEAD ? HEAD : sizeOf(this.texts.words[(this.#next >>> 2) + 2] ?? 0);
    if (size > left) {
      const start = this.#position - left;
      if (start === this.#to) return false;
      this.#read(start, CHUNK);
      // A text of its own that is longer than a chunk.
      const whole = sizeOf(this.texts.words[2] ?? 0);
      if (whole > this.texts.bytes.length) this.#read(start, whole);
      this.#next = 0;
    }
    this.at = this.#next;
    this.#next += sizeOf(this.texts.words[(this.at >>> 2) + 2] ?? 0);
    return true;
  }

  /** Into new memory: what was given out stays as it is. */
  #read(start: number, most: number): void {
    const words = new Uint32Array(Math.min(most, this.#to - start) / 4);
    const bytes = Buffer.from(words.buffer);
    if (this.#file.read(bytes, start) < bytes.length) throw new Error('the temporary file was cut short');
    this.texts = { words, bytes };
    this.#position = start + bytes.length;
  }
}
