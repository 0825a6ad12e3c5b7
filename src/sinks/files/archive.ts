import type { FileLine, NewManifestLine } from '../../core/archive-manifest.ts';
import type { Compression } from '../../core/compression.ts';
import type { JournalEvent } from '../../core/event.ts';
import type { OpenFolder } from './writer-folders.ts';
import type { Part, PartName } from './part.ts';

/** Steps of finishing a part, each named after what has just become true. A crash between any two is mended at open. */
export const FINISH_STEPS = ['closed', 'written', 'put', 'listed', 'removed'] as const;

export type FinishStep = (typeof FINISH_STEPS)[number];

/** A file in the archive, as its line in the manifest will describe it. */
export type ArchivedFile = Readonly<Pick<FileLine, 'file' | 'bytes' | 'sha256'>>;

/** The finished file of a part on this machine. */
export interface FinishedFile extends Omit<ArchivedFile, 'file'> {
  /** Absolute. */
  readonly path: string;
}

/**
 * An archive for writing: a folder of this machine, or an object store. A part becomes a file of it in these steps: `write`,
 * `put`, `list`, `end`. Each can be repeated after a failure or a crash, and gives the same file and one line in the manifest.
 */
export interface Archive {
  /** As configured: a path, or a URL. */
  readonly name: string;
  /** Opens the manifest. Called again when the folder of open parts was replaced. */
  open(folder: OpenFolder): Promise<void>;
  /** The name that readers open: an absolute path, or a URL. */
  nameOf(file: string): string;
  /** Whether a file was finished of this part before a crash. */
  hasFinished(part: PartName, compression: Compression): Promise<boolean>;
  /** Of these files, the ones with a line in the manifest. */
  listed(files: ReadonlySet<string>): Promise<ReadonlySet<string>>;
  /** Called at open, once all listed parts have been ended. */
  recovered(): Promise<void>;
  /** Writes the finished file of a closed part, synced. When it throws, the part is as it was. */
  write(part: Part, compression: Compression, signal: AbortSignal): Promise<FinishedFile>;
  /** Moves the finished file to its place in the archive. */
  put(
    part: Part,
    compression: Compression,
    finished: FinishedFile,
    signal: AbortSignal,
  ): Promise<ArchivedFile>;
  /** Adds lines to the manifest. */
  list(lines: readonly NewManifestLine[]): Promise<void>;
  /** Ends a part whose file is listed; the same again for one that has ended. */
  end(part: Part): Promise<void>;
  /** No crash can list this file again: its part has ended. */
  forget(file: string): Promise<void>;
  /** Removes what was written of a part that is gone. */
  clear(part: PartName): Promise<void>;
  /** Puts the content of one event. @returns what is there: the same event, perhaps compressed by another version of zlib */
  putEvent(file: string, content: Buffer, event: JournalEvent): Promise<Buffer>;
  close(): Promise<void>;
}
