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
import type { FinishedFile } from './archive.ts';
import { compress, recordsOf } from './compress.ts';
import { pathBeside, type Part, type PartName } from './part.ts';

type Facts = Omit<FinishedFile, 'path'>;

/** The finished files of a spool, each beside its part until it is in the store. */
export class FinishedFiles {
  readonly #log: SinkLog;
  /** Hash of each part's file, once it was written, or compared with its part. */
  readonly #known = new WeakMap<Part, string>();

  constructor(log: SinkLog) {
    this.#log = log;
  }

  /** The same file at each call, until it is removed. */
  async write(part: Part, compression: Compression, signal: AbortSignal): Promise<FinishedFile> {
    const path = pathBeside(part.name, compression);
    const facts =
      (await this.#factsIfRight(part, path)) ??
      (compression === 'none' ? await linkTo(part, path) : null) ??
      (await compressTo(part, path, compression, signal));
    this.#known.set(part, facts.sha256);
    return { path, ...facts };
  }

  /** Removes the files of a part; the caller syncs. */
  async remove(part: PartName): Promise<void> {
    for (const compression of COMPRESSIONS) await rm(pathBeside(part, compression), { force: true });
  }

  /** Null when there is no file, or one with other records. */
  async #factsIfRight(part: Part, path: string): Promise<Facts | null> {
    if (!(await isThere(path))) return null;
    const facts = await hashChunks(readPlain(path));
    if (facts.sha256 === this.#known.get(part) || (await holdsRecords(DISK, path, part))) return facts;
    this.#log.error(
      { path },
      'the compressed file does not hold the records of its part; it is written again',
    );
    return null;
  }
}

/**
 * Links a part that is not compressed to the name of its finished file, instead of copying it.
 * @returns null when the hash of the part is not known, or the file system has no hard links
 */
async function linkTo(part: Part, path: string): Promise<Facts | null> {
  const { sha256, length: bytes } = part;
  // What lies beyond its length was never acknowledged.
  if (sha256 === null || (await stat(part.path)).size !== bytes) return null;
  try {
    await link(part.path, path);
  } catch (error) {
    if (isMissing(error)) throw error;
    return null;
  }
  await syncFolder(dirname(path));
  return { bytes, sha256 };
}

async function compressTo(
  part: Part,
  path: string,
  compression: Compression,
  signal: AbortSignal,
): Promise<Facts> {
  const facts = await compress(part, compression, signal);
  signal.throwIfAborted();
  await rename(part.temporaryPath, path);
  await syncFolder(dirname(path));
  return facts;
}

/**
 * Whether a finished file has the part's records: one from before a crash or a restore may be damaged.
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
 * The object under this key, if it has the part's records: an erasure may have rewritten it after the answer to its put was lost.
 * @returns null when it has other records, or is not there
 * @throws StorageError
 */
export async function factsOfSame(
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
