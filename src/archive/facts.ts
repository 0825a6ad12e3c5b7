import { createHash } from 'node:crypto';
import { parseEnvelope, type RecordEnvelope } from '../core/archive-record.ts';
import { MillraceError } from '../core/errors.ts';
import { SEALED_TYPE } from '../core/sealed-record.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import type { ArchivePlace } from './place.ts';
import { readInChunks, type FileOptions } from './read.ts';
import type { ArchiveItem } from './read-line.ts';

/** What a manifest line says of the records of a file. */
export class RecordCounts {
  records = 0;
  /** Least and greatest time of receipt; empty without records. */
  first = '';
  last = '';
  readonly types = new Map<string, number>();

  /** @param at ISO 8601 in UTC with a fixed number of digits: the order of the texts is the order of the times */
  add(type: string, at: string): void {
    this.records += 1;
    this.types.set(type, (this.types.get(type) ?? 0) + 1);
    if (this.first === '' || at < this.first) this.first = at;
    if (at > this.last) this.last = at;
  }
}

/** A file of records after it was read. */
export interface FileFacts extends Readonly<Omit<RecordCounts, 'add'>> {
  /** Size and hash on disk. */
  readonly bytes: number;
  readonly sha256: string;
  /** Line of the first record that is older than the one before it; null when all are in order. */
  readonly disorderedAt: number | null;
  /** Whether it could be read to its end. */
  readonly whole: boolean;
}

/**
 * Reads one file of records to its end, in constant memory. Sealed records count as such, opened or not.
 * @param options.onItem called for each record and each problem, in order
 * @returns null for a file that cannot be read at all, after a problem that says so
 */
export async function readFacts(
  place: ArchivePlace,
  file: string,
  options: Pick<FileOptions, 'opener' | 'signal' | 'onBytes'> & {
    readonly onItem: (item: ArchiveItem<RecordEnvelope>) => void;
  },
): Promise<FileFacts | null> {
  const hash = createHash('sha256');
  const counts = new RecordCounts();
  let bytes = 0;
  let before = '';
  let disorderedAt: number | null = null;
  let whole = true;
  const take = (item: ArchiveItem<RecordEnvelope>): void => {
    options.onItem(item);
    const isRecord = item.kind === 'record';
    const at = isRecord ? item.record.received_at : item.sealed?.received_at;
    if (at === undefined) {
      whole &&= item.line !== null;
      return;
    }
    counts.add(isRecord && !item.sealed ? item.record.event_type : SEALED_TYPE, at);
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
  // The reader stops at damage; the hash covers all bytes.
  try {
    const onDisk = whole ? { bytes, sha256: hash.digest('hex') } : await hashChunks(place.chunks(file));
    const { records, types, first, last } = counts;
    return { ...onDisk, records, types, first, last, disorderedAt, whole };
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    return null;
  }
}
