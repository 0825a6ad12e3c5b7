import { setImmediate } from 'node:timers/promises';
import { SpillFile } from './spill-file.ts';
import { HEAD, isSameText, orderedOffsets, sizeOf, writeText, type Texts } from './text-records.ts';
import { TextRuns } from './text-runs.ts';

const FIRST_ROOM = 64 * 1024;
/** What is held in memory before it is sorted and goes to disk: what a processor's cache holds is sorted soonest. */
const MOST_BYTES = 8 * 2 ** 20;
const MOST_TEXTS = 128 * 1024;
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
  #held = room(FIRST_ROOM);
  #length = 0;
  #count = 0;
  #spilled: SpillFile | null = null;
  readonly #runs: { from: number; to: number }[] = [];

  /** @param mostBytes of texts held in memory, a multiple of four; and how many texts */
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
    const size = sizeOf(text.length * 3);
    const { bytes } = this.#held;
    if (this.#length + size > bytes.length || this.#count === this.#mostTexts) this.#makeRoom(size);
    this.#length += writeText(this.#held, this.#length, text, number);
    this.#count += 1;
  }

  /** Visits all that was added. Nothing can be added afterwards. @throws the signal's reason; the system's error */
  async visit(visitor: GroupVisitor, signal: AbortSignal): Promise<void> {
    let seen = 0;
    let before: Texts | null = null;
    let beforeAt = 0;
    for (const texts = this.#inOrder(); texts.next();) {
      const { current, at } = texts;
      if (before !== null && !isSameText(before, beforeAt, current, at))
        visitor.end(textAt(before, beforeAt));
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
    if (this.#spilled === null) return new HeldTexts(this.#held, this.#count);
    this.#spill();
    this.#held = room(0);
    return new TextRuns(this.#spilled, this.#runs);
  }

  #makeRoom(size: number): void {
    const isFull = this.#length + size > this.#mostBytes || this.#count === this.#mostTexts;
    if (isFull && this.#count > 0) this.#spill();
    const wanted = this.#length + size;
    const has = this.#held.bytes.length;
    if (wanted <= has) return;
    const grown = room(Math.max(wanted, Math.min(has * 2, this.#mostBytes)));
    grown.words.set(this.#held.words.subarray(0, this.#length / 4));
    this.#held = grown;
  }

  /** Writes what is held as a run of its own. */
  #spill(): void {
    const file = (this.#spilled ??= SpillFile.create());
    const from = file.length;
    const { words } = this.#held;
    for (const at of orderedOffsets(this.#held, this.#count)) {
      const word = at >>> 2;
      file.append(words, word, word + sizeOf(words[word + 2] ?? 0) / 4);
    }
    file.flush();
    this.#runs.push({ from, to: file.length });
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

/** @param bytes a multiple of four */
function room(bytes: number): Texts {
  const words = new Uint32Array(bytes / 4);
  return { words, bytes: Buffer.from(words.buffer) };
}

function textAt({ words, bytes }: Texts, at: number): Buffer {
  return bytes.subarray(at + HEAD, at + HEAD + (words[(at >>> 2) + 2] ?? 0));
}
