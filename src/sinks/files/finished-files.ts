import { link, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileChunks } from '../../archive/file-lines.ts';
import { DISK, type Bytes } from '../../archive/place.ts';
import { compressionOf, DATA_EXTENSIONS } from '../../core/archive.ts';
import { COMPRESSIONS, type Compression } from '../../core/compression.ts';
import type { SinkLog } from '../../core/sink.ts';
import { type ObjectStore, StorageError } from '../../core/storage.ts';
import { isMissing, readPlain, syncFolder } from '../../lib/durable.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import { compress, recordsOf } from './compress.ts';
import { finishedPlace, type Part, type PartPlace } from './part.ts';

/** What a manifest says of a file. */
export interface Facts {
  readonly bytes: number;
  readonly sha256: string;
}

/** What is to be put into a store: the finished file of each part, beside it, so that a retry puts the same bytes. */
export class FinishedFiles {
  readonly #log: SinkLog;
  /** Hash of the one that was made, or found right, for each part. */
  readonly #known = new WeakMap<Part, string>();

  constructor(log: SinkLog) {
    this.#log = log;
  }

  /** The same at each call until it is removed. @returns its absolute path, and what is in it */
  async make(
    part: Part,
    compression: Compression,
    signal: AbortSignal,
  ): Promise<Facts & { readonly file: string }> {
    const file = finishedPlace(part.place, compression).path;
    if (await isThere(file)) {
      const facts = await hashChunks(readPlain(file));
      if (facts.sha256 === this.#known.get(part) || (await holdsRecords(DISK, file, part))) {
        this.#known.set(part, facts.sha256);
        return { file, ...facts };
      }
      const said = 'the compressed file does not hold the records of its part; it is made anew';
      this.#log.error({ path: file }, said);
    }
    const same = compression === 'none' ? await linked(part, file) : null;
    if (same !== null) {
      this.#known.set(part, same.sha256);
      return { file, ...same };
    }
    const written = await compress(part, compression, signal);
    signal.throwIfAborted();
    await rename(part.temporaryPath, file);
    await syncFolder(dirname(file));
    this.#known.set(part, written.sha256);
    return { file, ...written };
  }

  /** Of a part that is gone. */
  async clear(place: PartPlace): Promise<void> {
    await this.remove(place);
    const folder = dirname(finishedPlace(place, 'none').path);
    await syncFolder(folder).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }

  /** Of a part that ends. Not synced. */
  async remove(place: PartPlace): Promise<void> {
    for (const compression of COMPRESSIONS) await rm(finishedPlace(place, compression).path, { force: true });
  }
}

/**
 * Gives a part that is the finished file already the name of one too, instead of a copy of it.
 * @returns null when what is in the file is not known, or the file system has no such names
 */
async function linked(part: Part, file: string): Promise<Facts | null> {
  const { sha256, length: bytes, path } = part;
  // What lies beyond its length was never acknowledged.
  if (sha256 === null || (await stat(path)).size !== bytes) return null;
  try {
    await link(path, file);
  } catch (error) {
    if (isMissing(error)) throw error;
    return null;
  }
  await syncFolder(dirname(file));
  return { bytes, sha256 };
}

/**
 * Whether the part's records are in its finished file; one from before a crash or a restore may have been damaged since.
 * @throws StorageError
 */
async function holdsRecords(place: Bytes, file: string, part: Part): Promise<boolean> {
  const wanted = await hashChunks(recordsOf(part));
  try {
    return (await hashChunks(fileChunks(place, file))).sha256 === wanted.sha256;
  } catch (error) {
    if (error instanceof StorageError) throw error;
    return false;
  }
}

/**
 * Of an object with the part's name. It has the part's records in other bytes when the answer to its put was lost, and an erasure wrote
 * it anew before the sink was open again.
 * @returns null when it has others
 * @throws StorageError
 */
export async function factsIfOf(
  part: Part,
  store: ObjectStore,
  key: string,
  signal: AbortSignal,
): Promise<Facts | null> {
  const found = await store.head(key, signal);
  if (found === null) return null;
  const place = { chunks: () => store.get(key, { version: found.version, signal }) };
  return (await holdsRecords(place, key, part)) ? hashChunks(place.chunks()) : null;
}

/** As `newStem` makes them. */
const STEM = /^\d{8}T\d{9}Z-[0-9a-f]{12}$/;

/** The stem of the part that a finished file was made of; null when the name is none of ours. */
export function stemOf(name: string): string | null {
  const compression = compressionOf(name);
  const stem = compression === null ? '' : name.slice(0, -DATA_EXTENSIONS[compression].length);
  return STEM.test(stem) ? stem : null;
}

export async function isThere(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
