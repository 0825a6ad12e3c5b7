import { join } from 'node:path';
import type { StoredObject } from '../core/storage.ts';
import { readPlain } from '../lib/durable.ts';

/** Ends the names of files in progress. */
export const TEMPORARY_EXTENSION = '.tmp';

/** Reads files by their names. */
export interface Bytes {
  /** The bytes of one file from its beginning. @throws what kept it from being read */
  chunks(file: string): AsyncIterable<Buffer>;
}

/** Reads files of this machine by their paths. */
export const DISK: Bytes = { chunks: (path) => readPlain(path) };

/** An archive in a folder or an object store. File names are relative to its root, `/`-separated. */
export interface ArchivePlace extends Bytes {
  /** An absolute path without symbolic links, or a URL without credentials. */
  readonly root: string;
  /** @throws MillraceError archive_unreadable, store_unreadable */
  list(): Promise<ArchiveListing>;
  /**
   * Null for a missing file, or one that is not a plain file. In an object store, the state of the last listing.
   * @throws MillraceError store_unreadable; StorageError, or the system's error, for a file that cannot be looked at
   */
  stat(file: string): Promise<StoredObject | null>;
  /** Where the bytes of a compacted file are now; null for any other file, and when an erasure has changed them since. */
  sliceOf(file: string): Promise<Slice | null>;
  /** Names the files that are read next, in order, so that an object store can fetch several at once. */
  expect(files: Iterable<string>): void;
  /** Cancels what is being fetched. */
  close(): Promise<void>;
}

/** Bytes of a compacted file inside the file that a compaction made. */
export interface Slice {
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
}

/** The files of an archive by their kind, each list in order of its text. */
export interface ArchiveListing {
  readonly place: ArchivePlace;
  /** The root of the place; the folder of a single file. */
  readonly root: string;
  /** Finished files that count: every name with `.ndjson` in it, as `*.ndjson*` finds them, but for `aside`. */
  readonly files: readonly string[];
  /** Finished files that do not count: replaced by a compaction, or made by one that stopped before it listed them. */
  readonly aside: readonly string[];
  /** Unfinished files: records not compressed and not in the manifest yet. */
  readonly parts: readonly string[];
  /** Events kept whole because they were too large for a sink. */
  readonly claims: readonly string[];
  /** Files in progress; left over after a kill. */
  readonly temporary: readonly string[];
  /** Symbolic links, FIFOs and the like, which are never followed. */
  readonly notFollowed: readonly string[];
  /** The manifest's files. */
  readonly manifest: readonly string[];
  readonly others: readonly string[];
  /** False when the path named a single file. */
  readonly isFolder: boolean;
}

/** The full path or URL of an archive's file. */
export function nameOf(root: string, file: string): string {
  return root.includes('://') ? `${root}/${file}` : join(root, file);
}
