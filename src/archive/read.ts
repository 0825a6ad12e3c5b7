import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_EXTENSIONS, PART_EXTENSION, type ArchiveRecord } from '../core/archive.ts';
import { parseRecord } from '../core/archive-record.ts';
import { messageOf } from '../core/errors.ts';
import { fileLines } from './file-lines.ts';
import { listArchive } from './list.ts';

/**
 * One record with the exact bytes that were signed, or what could not be read. `file` is relative to the archive.
 * A problem without a line concerns the rest of its file; the next files are still read.
 */
export type ArchiveItem =
  | {
      readonly kind: 'record';
      readonly file: string;
      /** Counted from 1. */
      readonly line: number;
      readonly record: ArchiveRecord;
      /** May be a view into a larger buffer: copy it to keep it for long. */
      readonly body: Buffer;
    }
  | {
      readonly kind: 'problem';
      readonly file: string;
      readonly line: number | null;
      readonly reason: string;
    };

export interface ReadOptions {
  /** Read the unfinished files too; their last line may be incomplete while a receiver runs, and is then left out. */
  readonly parts?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Streams the records of an archive folder, or of one file: plain, gzip or zstd by its extension, file by file in order
 * of their paths, in constant memory.
 * @throws MillraceError archive_unreadable when `path` cannot be listed
 */
export async function* readArchive(path: string, options: ReadOptions = {}): AsyncGenerator<ArchiveItem> {
  const { root, files, parts, notFollowed } = await listArchive(path);
  for (const file of notFollowed) {
    yield { kind: 'problem', file, line: null, reason: 'not a plain file; not followed' };
  }
  for (const file of files) yield* readArchiveFile(root, file, options.signal);
  if (options.parts !== true) return;
  const read = new Set(files);
  for (const part of parts) {
    // Between listing and reading, the receiver may have finished the file.
    const names = finishedNames(part);
    if (names.some((name) => read.has(name))) continue;
    const finished = names.find((name) => existsSync(join(root, name)));
    yield* readArchiveFile(root, finished ?? part, options.signal);
  }
}

/** What a part may be called once it is finished: `_open/<writer>/<folder>/<stem>.part` → `<folder>/<stem>.ndjson…`. */
function finishedNames(part: string): string[] {
  const stem = part.split('/').slice(2).join('/').slice(0, -PART_EXTENSION.length);
  return Object.values(DATA_EXTENSIONS).map((extension) => `${stem}${extension}`);
}

/**
 * Streams the records of one file.
 * @param file relative to `root`
 * @param onBytes sees every byte as it lies on disk, in order; not all of them if the file is damaged
 */
export async function* readArchiveFile(
  root: string,
  file: string,
  signal?: AbortSignal,
  onBytes?: (chunk: Buffer) => void,
): AsyncGenerator<ArchiveItem> {
  const unfinished = file.endsWith(PART_EXTENSION);
  try {
    for await (const lines of fileLines(join(root, file), onBytes)) {
      signal?.throwIfAborted();
      for (const { number: line, bytes, ended } of lines) {
        if (bytes === null) {
          yield { kind: 'problem', file, line, reason: 'the line is too long' };
          continue;
        }
        if (!ended && unfinished) return;
        const parsed = ended ? parseRecord(bytes) : ({ ok: false, reason: 'the line has no end' } as const);
        if (parsed.ok) yield { kind: 'record', file, line, record: parsed.record, body: parsed.body };
        else yield { kind: 'problem', file, line, reason: parsed.reason };
      }
    }
  } catch (error) {
    if (signal?.aborted === true) throw error;
    yield { kind: 'problem', file, line: null, reason: messageOf(error) };
  }
}
