import { createHash } from 'node:crypto';
import { parseEnvelope, type RecordEnvelope } from '../core/archive-record.ts';
import { MillraceError } from '../core/errors.ts';
import { SEALED_TYPE, type RecordOpener } from '../core/sealed-record.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import type { ArchivePlace, Bytes } from './place.ts';
import { readInChunks } from './read.ts';
import type { ArchiveItem } from './read-line.ts';

/** What a file turned out to hold. */
export interface FileFacts {
  /** Size and hash as it lies on disk. */
  readonly bytes: number;
  readonly sha256: string;
  readonly records: number;
  readonly types: ReadonlyMap<string, number>;
  /** Of the first and the last record by time of receipt; empty when there is none. */
  readonly first: string;
  readonly last: string;
  /** Line of the first record that was received before the one in front of it; null when they are in order. */
  readonly disorderedAt: number | null;
  /** False when it could not be read to its end. */
  readonly whole: boolean;
}

/**
 * Reads one file of records to its end, in constant memory. Sealed records count as such, opened or not.
 * @param options.onItem told of each record and each problem, in order
 * @returns the facts; null for a file that cannot be read at all, which was told as a problem
 */
export async function readFacts(
  place: ArchivePlace,
  file: string,
  options: {
    readonly onItem: (item: ArchiveItem<RecordEnvelope>) => void;
    readonly opener?: RecordOpener | undefined;
    readonly signal?: AbortSignal | undefined;
    /** Sees every byte as it lies on disk, in order; not all of them if the file is damaged. */
    readonly onBytes?: ((chunk: Buffer) => void) | undefined;
  },
): Promise<FileFacts | null> {
  const hash = createHash('sha256');
  const types = new Map<string, number>();
  let bytes = 0;
  let records = 0;
  let first = '';
  let last = '';
  let before = '';
  let disorderedAt: number | null = null;
  let whole = true;
  const take = (item: ArchiveItem<RecordEnvelope>): void => {
    options.onItem(item);
    const counted = countedAs(item);
    if (counted === null) {
      whole &&= item.line !== null;
      return;
    }
    const { type, at } = counted;
    records += 1;
    types.set(type, (types.get(type) ?? 0) + 1);
    // ISO 8601 in UTC with a fixed number of digits: the order of the texts is the order of the times.
    if (first === '' || at < first) first = at;
    if (at > last) last = at;
    if (at < before) disorderedAt ??= item.line;
    before = at;
  };
  const onBytes = (chunk: Buffer): void => {
    hash.update(chunk);
    bytes += chunk.length;
    options.onBytes?.(chunk);
  };
  for await (const items of readInChunks(place, file, parseEnvelope, { ...options, onBytes }))
    for (const item of items) take(item);
  // The reader stops where a file is damaged; its bytes are hashed to the end all the same.
  try {
    const onDisk = whole ? { bytes, sha256: hash.digest('hex') } : await hashFile(place, file);
    return { ...onDisk, records, types, first, last, disorderedAt, whole };
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    return null;
  }
}

/** What the manifest counts an item as; null for what is no record. */
function countedAs(item: ArchiveItem<RecordEnvelope>): { type: string; at: string } | null {
  if (item.kind === 'problem') {
    return item.sealed === undefined ? null : { type: SEALED_TYPE, at: item.sealed.received_at };
  }
  const { event_type: type, received_at: at } = item.record;
  return { type: item.sealed ? SEALED_TYPE : type, at };
}

/** Size and hash of a file. @throws what the place throws */
export function hashFile(
  place: Bytes,
  file: string,
  signal?: AbortSignal,
): Promise<{ bytes: number; sha256: string }> {
  return hashChunks(place.chunks(file), signal);
}
