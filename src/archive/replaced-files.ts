import { isMissing } from '../core/objects.ts';
import { Compactions } from './compactions.ts';
import { kindOf } from './file-kind.ts';
import { readManifest } from './manifest.ts';
import type { ArchivePlace, Slice } from './place.ts';

/** Tries in a row after which a file is missing: no archive has so many compactions at once. */
const TRIES = 50;
/** Tries of one compacted file, which another reader's listing can still name after it is gone. */
const TRIES_OF_ONE = 4;

/** Reads files that a compaction has replaced since they were listed, from the file that it made of them. */
export class ReplacedFiles {
  readonly #place: ArchivePlace;
  readonly #open: (file: string, offset: number) => AsyncIterable<Buffer>;
  #known: ((file: string) => Slice | null) | null = null;

  /** @param open throws StorageError `missing` for a file that is not there */
  constructor(place: ArchivePlace, open: (file: string, offset: number) => AsyncIterable<Buffer>) {
    this.#place = place;
    this.#open = open;
  }

  /** Null for a file that was not replaced, or whose bytes an erasure has changed since. */
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

  /** The bytes of a file from its beginning, wherever they are now. */
  async *read(file: string): AsyncGenerator<Buffer> {
    const gone = yield* untilGone(this.#open(file, 0));
    if (gone === null) return;
    let { got } = gone;
    const triesOf = new Map<string, number>();
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const slice = await this.sliceOf(file);
      const before = triesOf.get(slice?.file ?? '') ?? 0;
      if (slice === null || before === TRIES_OF_ONE) break;
      triesOf.set(slice.file, before + 1);
      if (got >= slice.bytes) return;
      try {
        for await (const chunk of this.#open(slice.file, slice.offset + got)) {
          const own = chunk.subarray(0, slice.bytes - got);
          got += own.length;
          yield own;
          if (got >= slice.bytes) return;
        }
        break;
      } catch (error) {
        if (!isMissing(error)) throw error;
        // The compacted file was replaced too: look again.
        this.#known = null;
      }
    }
    throw gone.error;
  }
}

/** Yields a file's bytes. @returns what was got of it when it is gone, and the error that says so; null at its end */
export async function* untilGone(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, { readonly got: number; readonly error: unknown } | null> {
  let got = 0;
  try {
    for await (const chunk of chunks) {
      got += chunk.length;
      yield chunk;
    }
    return null;
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { got, error };
  }
}
