import { fileChunks, freeChunk } from '../archive/file-lines.ts';
import type { Bytes } from '../archive/place.ts';
import { type FileOptions, readInChunks } from '../archive/read.ts';
import type { ArchiveItem } from '../archive/read-line.ts';
import type { ParseRecord } from '../core/archive-record.ts';
import { MillraceError, messageOf } from '../core/errors.ts';

export type Problem = ArchiveItem & { kind: 'problem' };

/** True for a record whose key an erasure has destroyed. @throws MillraceError archive_sealed when there are no keys at all */
export function isErased({ file, reason, sealed }: Problem): boolean {
  if (sealed?.why === 'no_keys') throw new MillraceError('archive_sealed', `${file}: ${reason}`);
  return sealed?.why === 'erased';
}

/** A piece of a file of the archive. */
export interface SourceBytes {
  /** The last line may continue in the next piece. */
  readonly bytes: Buffer;
  /** Sealed records in it that were opened. */
  readonly opened: number;
  readonly problems: readonly Problem[];
  /** To be called when the bytes are no longer used. */
  readonly release?: () => void;
}

const LINE_FEED = Buffer.from('\n');

/** Takes any line, because the shaper parses it. An empty line stands for a record that could not be opened. */
const asItIs: ParseRecord<null> = (line) =>
  line.length === 0 ? { ok: false, reason: 'not an archive record' } : { ok: true, record: null, body: line };

/** The lines of a file; with an opener each is opened, and unreadable ones are empty. */
export function sourceBytes(place: Bytes, file: string, options: FileOptions): AsyncIterable<SourceBytes> {
  return options.opener === undefined ? asTheyLie(place, file, options) : opened(place, file, options);
}

async function* asTheyLie(
  place: Bytes,
  file: string,
  { signal, onBytes }: FileOptions,
): AsyncGenerator<SourceBytes> {
  try {
    for await (const bytes of fileChunks(place, file, { onBytes })) {
      signal?.throwIfAborted();
      yield { bytes, opened: 0, problems: [], release: () => freeChunk(file, bytes) };
    }
  } catch (error) {
    // An error of the store is no problem of the file.
    if (signal?.aborted === true || error instanceof MillraceError) throw error;
    const problem: Problem = { kind: 'problem', file, line: null, reason: messageOf(error) };
    yield { bytes: Buffer.alloc(0), opened: 0, problems: [problem] };
  }
}

async function* opened(place: Bytes, file: string, options: FileOptions): AsyncGenerator<SourceBytes> {
  for await (const items of readInChunks(place, file, asItIs, options)) {
    const lines: Buffer[] = [];
    const problems: Problem[] = [];
    let count = 0;
    for (const item of items) {
      if (item.kind === 'problem') problems.push(item);
      else lines.push(item.text);
      if (item.line !== null) lines.push(LINE_FEED);
      if (item.kind === 'record' && item.sealed) count += 1;
    }
    yield { bytes: Buffer.concat(lines), opened: count, problems };
  }
}
