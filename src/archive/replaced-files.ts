import { kindOf } from './file-kind.ts';
import { Compactions } from './compactions.ts';
import { readManifest } from './manifest.ts';
import type { ArchivePlace, Slice } from './place.ts';

/** Compactions, one after another, whose file is gone when it is to be read: more than anybody runs in a row. */
const TRIES = 50;
/** Of the same file; another reader's list may be older than its end. */
const SAME = 4;

/** How a place reads a file. */
export interface Reading {
  readonly open: (file: string, offset: number) => AsyncIterable<Buffer>;
  /** Whether an error says that the file is not there. */
  readonly isGone: (error: unknown) => boolean;
}

/** Reads files that a compaction has replaced since they were listed: their bytes lie in the file that it made of them. */
export class ReplacedFiles {
  readonly #place: ArchivePlace;
  readonly #reading: Reading;
  #known: ((file: string) => Slice | null) | null = null;

  constructor(place: ArchivePlace, reading: Reading) {
    this.#place = place;
    this.#reading = reading;
  }

  /** Null for what was not replaced, or whose bytes an erasure has changed since. */
  async sliceOf(file: string): Promise<Slice | null> {
    if (kindOf(file) !== 'file') return null;
    const known = this.#known?.(file) ?? null;
    if (known !== null) return known;
    const listing = await this.#place.list();
    const { entries, compactions: lines } = await readManifest(listing);
    const compactions = new Compactions(lines);
    const sizes = new Map<string, number | null>();
    for (const name of listing.files)
      if (lines.has(name)) sizes.set(name, (await this.#place.stat(name))?.bytes ?? null);
    this.#known = (name) => compactions.slice(name, entries, (by, bytes) => sizes.get(by) === bytes);
    return this.#known(file);
  }

  /** The bytes of a file from its beginning, wherever they are. */
  async *read(file: string): AsyncGenerator<Buffer> {
    const { open, isGone } = this.#reading;
    let got = 0;
    let gone: unknown;
    try {
      for await (const chunk of open(file, 0)) {
        got += chunk.length;
        yield chunk;
      }
      return;
    } catch (error) {
      if (!isGone(error)) throw error;
      gone = error;
    }
    const asked = new Map<string, number>();
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const slice = await this.sliceOf(file);
      const before = asked.get(slice?.file ?? '') ?? 0;
      // Gone, and said to have them again and again: it was no compaction that took it.
      if (slice === null || before === SAME) break;
      asked.set(slice.file, before + 1);
      if (got >= slice.bytes) return;
      try {
        for await (const chunk of open(slice.file, slice.offset + got)) {
          const own = chunk.subarray(0, slice.bytes - got);
          got += own.length;
          yield own;
          if (got >= slice.bytes) return;
        }
        break;
      } catch (error) {
        if (!isGone(error)) throw error;
        // That one has been joined with others too, since it was looked for.
        this.#known = null;
      }
    }
    throw gone;
  }
}
