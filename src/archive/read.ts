import { DATA_EXTENSIONS, PART_EXTENSION } from '../core/archive.ts';
import { parseRecord, type ParseRecord } from '../core/archive-record.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { isMissing } from '../lib/durable.ts';
import type { Line } from '../lib/lines.ts';
import { fileLines, type LineOptions } from './file-lines.ts';
import type { ArchiveListing, ArchivePlace, Bytes } from './place.ts';
import { listArchive, type Places } from './places.ts';
import { type ArchiveItem, readLine } from './read-line.ts';

export interface ReadOptions extends Pick<FileOptions, 'signal' | 'opener' | 'frees'> {
  readonly places?: Places | undefined;
  /** Whether to read unfinished files too, without an incomplete last line. */
  readonly parts?: boolean;
  /** Finished files to leave out, relative to the archive. */
  readonly skip?: ReadonlySet<string>;
}

/**
 * Streams the records of an archive, or of one file, in order of paths, in constant memory. Gzip and zstd by extension.
 * @throws MillraceError archive_unreadable when `path` cannot be listed
 */
export async function* readArchive(path: string, options: ReadOptions = {}): AsyncGenerator<ArchiveItem> {
  const listing = await listArchive(path, options.places);
  for await (const items of readListed(listing, parseRecord, options)) yield* items;
}

/** Like `readArchive`, of a listing, a chunk at a time, which is faster. @param parse returns what is needed of a record */
export async function* readListed<R>(
  { place, files, parts, notFollowed }: ArchiveListing,
  parse: ParseRecord<R>,
  options: ReadOptions = {},
): AsyncGenerator<Iterable<ArchiveItem<R>>> {
  for (const file of notFollowed) {
    yield [{ kind: 'problem', file, line: null, reason: 'not a plain file; not followed' }];
  }
  const wanted = files.filter((file) => options.skip?.has(file) !== true);
  place.expect(wanted);
  for (const file of wanted) {
    yield* readInChunks(place, file, parse, options);
  }
  if (options.parts !== true) return;
  const read = new Set(files);
  for (const part of parts) {
    if (finishedNames(part).some((name) => read.has(name))) continue;
    yield* readPart(place, part, parse, options);
  }
}

/** Reads an unfinished file, under its new name when the receiver has finished it since it was listed. */
async function* readPart<R>(
  place: ArchivePlace,
  part: string,
  parse: ParseRecord<R>,
  options: FileOptions,
): AsyncGenerator<Iterable<ArchiveItem<R>>> {
  const file = await presentName(place, part);
  let isGone = false;
  const onFault = (error: unknown): boolean => (isGone = file === part && isMissing(error));
  yield* readInChunks(place, file, parse, { ...options, onFault });
  if (isGone) yield* readInChunks(place, await presentName(place, part), parse, options);
}

/** The current name of a part: its own, or that of its finished file, which exists before the part is removed. */
export async function presentName(place: ArchivePlace, part: string): Promise<string> {
  const names = finishedNames(part);
  for (const name of names) if ((await place.stat(name)) !== null) return name;
  if ((await place.stat(part)) !== null) return part;
  for (const name of names) if ((await place.stat(name)) !== null) return name;
  for (const name of names) if ((await place.sliceOf(name)) !== null) return name;
  return part;
}

/** Possible names of a finished part: `_open/<writer>/<folder>/<stem>.part` → `<folder>/<stem>.ndjson…`. */
export function finishedNames(part: string): string[] {
  const stem = part.split('/').slice(2).join('/').slice(0, -PART_EXTENSION.length);
  return Object.values(DATA_EXTENSIONS).map((extension) => `${stem}${extension}`);
}

export interface FileOptions extends Pick<LineOptions, 'onBytes' | 'frees'> {
  readonly signal?: AbortSignal | undefined;
  /** Without it a sealed record is a problem. */
  readonly opener?: RecordOpener | undefined;
  /** Called when the file cannot be read; true suppresses the problem. */
  readonly onFault?: ((error: unknown) => boolean) | undefined;
}

/**
 * Streams the records of one file, a chunk at a time: a step of an async generator costs more than reading a record.
 * @param parse returns what is needed of a record
 */
export async function* readInChunks<R>(
  place: Bytes,
  file: string,
  parse: ParseRecord<R>,
  { signal, onBytes, opener, onFault, frees }: FileOptions,
): AsyncGenerator<Iterable<ArchiveItem<R>>> {
  const unfinished = file.endsWith(PART_EXTENSION);
  try {
    for await (const lines of fileLines(place, file, { onBytes, frees })) {
      signal?.throwIfAborted();
      yield itemsOf(lines, file, unfinished, parse, opener);
    }
  } catch (error) {
    // A store that does not answer says nothing about the file.
    if (signal?.aborted === true || error instanceof MillraceError) throw error;
    if (onFault?.(error) !== true) yield [{ kind: 'problem', file, line: null, reason: messageOf(error) }];
  }
}

function* itemsOf<R>(
  lines: readonly Line[],
  file: string,
  unfinished: boolean,
  parse: ParseRecord<R>,
  opener?: RecordOpener,
): Generator<ArchiveItem<R>> {
  for (const { number: line, bytes, ended } of lines) {
    if (bytes === null) yield { kind: 'problem', file, line, reason: 'the line is too long' };
    else if (ended) yield readLine(file, line, bytes, parse, opener);
    else if (!unfinished) yield { kind: 'problem', file, line, reason: 'the line has no end' };
  }
}
