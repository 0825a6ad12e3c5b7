import { DATA_EXTENSIONS, PART_EXTENSION } from '../core/archive.ts';
import { parseRecord, type ParseRecord } from '../core/archive-record.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { isMissing } from '../lib/durable.ts';
import type { Line } from '../lib/lines.ts';
import { fileLines } from './file-lines.ts';
import type { ArchiveListing, ArchivePlace, Bytes } from './place.ts';
import { listArchive, type Places } from './places.ts';
import { type ArchiveItem, readLine } from './read-line.ts';

export interface ReadOptions {
  /** Where archives are opened; without it, only folders are. */
  readonly places?: Places | undefined;
  /** Read the unfinished files too; their last line may be incomplete while a receiver runs, and is then left out. */
  readonly parts?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Finished files to pass over, relative to the archive. */
  readonly skip?: ReadonlySet<string>;
  /** Opens what is sealed; without it a sealed record is a problem that says so. */
  readonly opener?: RecordOpener | undefined;
  /** As in `FileOptions`. */
  readonly frees?: boolean | undefined;
}

/**
 * Streams the records of an archive folder, or of one file: plain, gzip or zstd by its extension, file by file in order
 * of their paths, in constant memory.
 * @throws MillraceError archive_unreadable when `path` cannot be listed
 */
export async function* readArchive(path: string, options?: ReadOptions): AsyncGenerator<ArchiveItem> {
  for await (const items of readArchiveInChunks(path, parseRecord, options)) yield* items;
}

/**
 * The same, those of one chunk at a time, for when every microsecond a record counts. Throws what `readArchive` does.
 * @param parse what is wanted of a record
 */
export async function* readArchiveInChunks<R>(
  path: string,
  parse: ParseRecord<R>,
  options: ReadOptions = {},
): AsyncGenerator<Iterable<ArchiveItem<R>>> {
  yield* readListed(await listArchive(path, options.places), parse, options);
}

/** The same, of what was listed before. */
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

/** Between listing and reading, and between looking and opening, the receiver may have finished the file. */
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

/** The name under which a part can be read now: its own, or that of its finished file, which is there before the part goes. */
export async function presentName(place: ArchivePlace, part: string): Promise<string> {
  const names = finishedNames(part);
  for (const name of names) if ((await place.stat(name)) !== null) return name;
  if ((await place.stat(part)) !== null) return part;
  for (const name of names) if ((await place.stat(name)) !== null) return name;
  for (const name of names) if ((await place.sliceOf(name)) !== null) return name;
  return part;
}

/** What a part may be called once it is finished: `_open/<writer>/<folder>/<stem>.part` → `<folder>/<stem>.ndjson…`. */
export function finishedNames(part: string): string[] {
  const stem = part.split('/').slice(2).join('/').slice(0, -PART_EXTENSION.length);
  return Object.values(DATA_EXTENSIONS).map((extension) => `${stem}${extension}`);
}

/** Streams the records of one file, as `readInChunks` does, whole and one by one. */
export async function* readArchiveFile(
  place: Bytes,
  file: string,
  options: FileOptions,
): AsyncGenerator<ArchiveItem> {
  for await (const items of readInChunks(place, file, parseRecord, options)) yield* items;
}

export interface FileOptions {
  readonly signal?: AbortSignal | undefined;
  /** Sees every byte as it lies on disk, in order; not all of them if the file is damaged. */
  readonly onBytes?: ((chunk: Buffer) => void) | undefined;
  readonly opener?: RecordOpener | undefined;
  /** Records are looked at before those of the next chunk are asked for, and not any more afterwards. */
  readonly frees?: boolean | undefined;
  /** Asked when the file cannot be read; true: what it answers is no problem, and nothing of the file was read. */
  readonly onFault?: ((error: unknown) => boolean) | undefined;
}

/**
 * Streams the records of one file, those of one chunk at a time: a step of an async generator for each record would cost
 * more than reading it.
 * @param parse what is wanted of a record
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
    // That its store cannot be asked says nothing of the file.
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
