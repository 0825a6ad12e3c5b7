import { join } from 'node:path';
import { readPlain } from '../lib/durable.ts';

/** Ends the names of files that are being written. */
export const TEMPORARY_EXTENSION = '.tmp';

/** Where the bytes of files come from. */
export interface Bytes {
  /** The bytes of one file from its beginning. @throws what kept it from being read */
  chunks(file: string): AsyncIterable<Buffer>;
}

/** Of files on this machine by their paths. */
export const DISK: Bytes = { chunks: (path) => readPlain(path) };

/**
 * Where one archive lies: a folder, or an object store. Its files are named relative to it, `/`-separated. What is read is
 * what lies there now.
 */
export interface ArchivePlace extends Bytes {
  /** Absolute and without symbolic links; or the URL, without credentials. */
  readonly root: string;
  /** What lies there. @throws MillraceError archive_unreadable */
  list(): Promise<ArchiveListing>;
  /** Null for what is not there, or is no plain file. */
  stat(file: string): Promise<FileState | null>;
  /**
   * Where the bytes of a file are that a compaction has replaced; null when it was not, or an erasure has changed them since.
   * `chunks` reads them by the old name.
   */
  moved(file: string): Promise<Slice | null>;
  /** Says which files are read next, and in what order: where each takes a while to come, several are fetched at once. */
  expect(files: Iterable<string>): void;
  /** Ends what is being fetched. */
  close(): Promise<void>;
}

/** Bytes of a file that a compaction replaced, in the file that has them now. */
export interface Slice {
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
}

/** What tells whether a file is still the one it was. */
export interface FileState {
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly modified: number;
  /** Another after each change; null in a folder. */
  readonly version: string | null;
}

/** What lies in an archive. Paths are relative to its root, in order of their text. */
export interface ArchiveListing {
  readonly place: ArchivePlace;
  /** The root of the place; the folder of a single file. */
  readonly root: string;
  /** Finished files that count: every name with `.ndjson` in it, as `*.ndjson*` finds them, but for `aside`. */
  readonly files: readonly string[];
  /** Finished files that do not count: a compaction has replaced them, or made them and was ended before it listed them. */
  readonly aside: readonly string[];
  /** Unfinished files: records not compressed and not in the manifest yet. */
  readonly parts: readonly string[];
  /** Events kept whole because they were too large for a sink. */
  readonly claims: readonly string[];
  /** What a writer was in the middle of; left over when it was killed. */
  readonly temporary: readonly string[];
  /** Symbolic links, FIFOs and the like, which are never followed. */
  readonly notFollowed: readonly string[];
  /** The files that the manifest is made of. */
  readonly manifest: readonly string[];
  /** What is none of these. */
  readonly others: readonly string[];
  /** False when the path named a single file. */
  readonly isFolder: boolean;
}

/** A file of an archive, for messages and as a name that no other archive has: its path, or the URL of its object. */
export function nameOf(root: string, file: string): string {
  return root.includes('://') ? `${root}/${file}` : join(root, file);
}
