import { createHash } from 'node:crypto';
import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RecordCounts } from '../../archive/facts.ts';
import { fileLines, wholeEvent } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import { writeArchiveFile, type FileOwner } from '../../archive/write-file.ts';
import { compressionOf } from '../../core/archive.ts';
import { parseHead, parseRecord, removedEventOf } from '../../core/archive-record.ts';
import type { RemovedEvent } from '../../core/erasure.ts';
import { entryOfRecord } from '../../core/receipt.ts';
import type { IdSearch } from './id-search.ts';
import { isSealed, parseSealed, SEALED_TYPE } from '../../core/sealed-record.ts';
import { syncFolder } from '../../lib/durable.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import type { LineOwners } from './file-kinds.ts';
import { mayHold } from './search-file.ts';

const LINE_FEED = Buffer.from('\n');

/** Counts a line, without its line break, if it is a record. */
export function countLine(contents: RecordCounts, line: Buffer): void {
  const sealed = isSealed(line) ? parseSealed(line) : null;
  const head = sealed === null ? parseHead(line)?.record : null;
  const at = sealed?.received_at ?? head?.received_at;
  if (at !== undefined) contents.add(head?.event_type ?? SEALED_TYPE, at);
}

/** A file that was rewritten; the file itself is unchanged until it is replaced. */
export interface Rewrite {
  /** Lines removed, by request. */
  readonly removed: Readonly<Record<string, number>>;
  /** Their entries in the log of receipts, base64, by request; absent when there are none. */
  readonly entries?: Readonly<Record<string, readonly string[]>>;
  /** Records removed; absent for files without records. */
  readonly events?: readonly RemovedEvent[];
  readonly lines: number;
  /** SHA-256 of the file before. */
  readonly before: string;
  /** Null when no line is left: then the file is removed. */
  readonly after: { readonly sha256: string; readonly bytes: number } | null;
  /** Of the records that are left; absent for files without records. */
  readonly contents?: RecordCounts;
}

export interface Rewriting {
  readonly bytes: Bytes;
  readonly file: string;
  /** Path of the new file until it is put in place. */
  readonly temporary: string;
  /** Owner and mode of the new file. */
  readonly like: FileOwner | undefined;
}

/**
 * Rewrites a file, synced, without the lines that fall under a request. The other lines keep their bytes.
 * @returns null when no line falls under a request
 */
export async function rewriteLines(
  { bytes, file, temporary, like }: Rewriting,
  owners: LineOwners,
  search: IdSearch,
  signal: AbortSignal,
): Promise<Rewrite | null> {
  const removed = new Map<string, number>();
  const entries = new Map<string, string[]>();
  const events: RemovedEvent[] = [];
  const contents = new RecordCounts();
  const before = createHash('sha256');
  let lines = 0;
  let kept = 0;
  const keep = async function* (): AsyncGenerator<Buffer> {
    for await (const batch of fileLines(bytes, file, { onBytes: (chunk) => before.update(chunk) })) {
      const pieces: Buffer[] = [];
      for (const { number, bytes: line, ended } of batch) {
        if (line === null) throw new Error(`line ${number} is too long to search`);
        const requests = mayHold(line, search) ? owners.ofLine(line) : [];
        if (requests.length > 0) {
          lines += 1;
          for (const request of requests) removed.set(request, (removed.get(request) ?? 0) + 1);
          const parsed = parseRecord(line);
          if (!parsed.ok) continue;
          const { record, body } = parsed;
          events.push(removedEventOf(record, body));
          const entry = entryOfRecord(record, body)?.toString('base64');
          if (entry !== undefined)
            for (const request of requests) getOrMake(entries, request, () => []).push(entry);
          continue;
        }
        kept += 1;
        countLine(contents, line);
        pieces.push(line);
        if (ended) pieces.push(LINE_FEED);
      }
      if (pieces.length > 0) yield Buffer.concat(pieces);
    }
  };
  const after = await writeArchiveFile(temporary, keep, compressionOf(file) ?? 'none', signal, like);
  if (lines === 0 || kept === 0) {
    await unlink(temporary);
    // Before the file is removed: no later run would look for its temporary file.
    await syncFolder(dirname(temporary));
  }
  if (lines === 0) return null;
  return {
    removed: Object.fromEntries(removed),
    ...(entries.size === 0 ? {} : { entries: Object.fromEntries(entries) }),
    events,
    lines,
    before: before.digest('hex'),
    after: kept === 0 ? null : after,
    contents,
  };
}

/** The same for a file of one event, which is removed whole. */
export async function eventRewrite(bytes: Bytes, file: string, owners: LineOwners): Promise<Rewrite | null> {
  const requests = owners.ofEvent(await wholeEvent(bytes, file));
  if (requests.length === 0) return null;
  const removed = Object.fromEntries(requests.map((request) => [request, 1]));
  return { removed, lines: 1, before: (await hashChunks(bytes.chunks(file))).sha256, after: null };
}
