import { setImmediate } from 'node:timers/promises';
import { SpillFile } from './spill-file.ts';
import { HEAD, hashOf, orderedOffsets, sameText, sizeOf, type Texts } from './text-records.ts';
import { TextRuns } from './text-runs.ts';

const FIRST_ROOM = 64 * 1024;
/** What is held in memory before it is sorted and goes to disk. */
const MOST_BYTES = 32 * 2 ** 20;
const MOST_TEXTS = 512 * 1024;
/** Texts between two looks at the signal: some milliseconds. */
const AT_A_TIME = 32 * 1024;

/** Told of each distinct text: its numbers in the order they were added, then the text itself. */
export interface GroupVisitor {
  add(number: number): void;
  /** @param text UTF-8; a view that is gone with the next one: copy it to keep it */
  end(text: Buffer): void;
}

/**
 * Texts by the million, each with a number, that are given back with equal ones together: what does not fit in memory is
 * sorted by its hash and written to a file without a name, run by run, and the runs are merged. Equal hashes are told
 * apart by the texts themselves, so that no two texts are ever taken for one.
 */
export class TextGroups {
  readonly #mostBytes: number;
  readonly #mostTexts: number;
  #words = new Uint32Array(FIRST_ROOM / 4);
  #bytes = bytesOf(this.#words);
  #length = 0;
  #count = 0;
  #spilled: SpillFile | null = null;
  readonly #runs: { from: number; to: number }[] = [];

  constructor(mostBytes = MOST_BYTES, mostTexts = MOST_TEXTS) {
    this.#mostBytes = mostBytes;
    this.#mostTexts = mostTexts;
  }

  /**
   * @param number a whole number below 2³²
   * @throws the system's error when the temporary file cannot be written
   */
  add(text: string, number: number): void {
    // A UTF-16 unit takes at most 3 bytes of UTF-8.
    const room = sizeOf(text.length * 3);
    if (this.#length + room > this.#bytes.length || this.#count === this.#mostTexts) this.#makeRoom(room);
    const at = this.#length;
    const length = this.#bytes.write(text, at + HEAD);
    const word = at >>> 2;
    this.#words[word] = hashOf(this.#bytes, at + HEAD, length);
    this.#words[word + 1] = number;
    this.#words[word + 2] = length;
    this.#length = at + sizeOf(length);
    this.#count += 1;
  }

  /** Visits all that was added. Nothing can be added afterwards. @throws the signal's reason; the system's error */
  async visit(visitor: GroupVisitor, signal: AbortSignal): Promise<void> {
    let seen = 0;
    let before: Texts | null = null;
    let beforeAt = 0;
    for (const texts = this.#inOrder(); texts.next();) {
      const { current, at } = texts;
      if (before !== null && !sameText(before, beforeAt, current, at)) visitor.end(textAt(before, beforeAt));
      visitor.add(current.words[(at >>> 2) + 1] ?? 0);
      before = current;
      beforeAt = at;
      seen += 1;
      if (seen % AT_A_TIME !== 0) continue;
      await setImmediate();
      signal.throwIfAborted();
    }
    if (before !== null) visitor.end(textAt(before, beforeAt));
  }

  close(): void {
    this.#spilled?.close();
    this.#spilled = null;
  }

  #inOrder(): { next(): boolean; readonly current: Texts; readonly at: number } {
    if (this.#spilled === null) return new HeldTexts(this.#held(), this.#count);
    this.#spill();
    this.#words = new Uint32Array(0);
    this.#bytes = bytesOf(this.#words);
    return new TextRuns(this.#spilled, this.#runs);
  }

  #held(): Texts {
    return { words: this.#words, bytes: this.#bytes };
  }

  #makeRoom(room: number): void {
    const isFull = this.#length + room > this.#mostBytes || this.#count === this.#mostTexts;
    if (isFull && this.#count > 0) this.#spill();
    const wanted = this.#length + room;
    if (wanted <= this.#bytes.length) return;
    const grown = new Uint32Array(Math.max(wanted, Math.min(this.#bytes.length * 2, this.#mostBytes)) / 4);
    grown.set(this.#words.subarray(0, this.#length / 4));
    this.#words = grown;
    this.#bytes = bytesOf(grown);
  }

  /** Writes what is held as a run of its own. */
  #spill(): void {
    this.#spilled ??= SpillFile.create();
    const from = this.#spilled.length;
    for (const at of orderedOffsets(this.#held(), this.#count)) {
      this.#spilled.append(this.#bytes, at, at + sizeOf(this.#words[(at >>> 2) + 2] ?? 0));
    }
    this.#spilled.flush();
    this.#runs.push({ from, to: this.#spilled.length });
    this.#length = 0;
    this.#count = 0;
  }
}

/** What never left memory, in order. */
class HeldTexts {
  readonly current: Texts;
  at = 0;
  readonly #offsets: Uint32Array;
  #n = 0;

  constructor(texts: Texts, count: number) {
    this.current = texts;
    this.#offsets = orderedOffsets(texts, count);
  }

  next(): boolean {
    if (this.#n === this.#offsets.length) return false;
    this.at = this.#offsets[this.#n] ?? 0;
    this.#n += 1;
    return true;
  }
}

function bytesOf(words: Uint32Array<ArrayBuffer>): Buffer<ArrayBuffer> {
  return Buffer.from(words.buffer);
}

function textAt({ words, bytes }: Texts, at: number): Buffer {
  return bytes.subarray(at + HEAD, at + HEAD + (words[(at >>> 2) + 2] ?? 0));
}
