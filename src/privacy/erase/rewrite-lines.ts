import { createHash } from 'node:crypto';
import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hashFile } from '../../archive/facts.ts';
import { fileLines, wholeEvent } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import { writeArchiveFile, type FileOwner } from '../../archive/write-file.ts';
import { compressionOf } from '../../core/archive.ts';
import { parseHead, parseRecord, takenOut } from '../../core/archive-record.ts';
import type { TakenOut } from '../../core/erasure.ts';
import { entryOfRecord } from '../../core/receipt.ts';
import type { IdSearch } from '../../core/id-search.ts';
import { isSealed, parseSealed, SEALED_TYPE } from '../../core/sealed-record.ts';
import { syncFolder } from '../../lib/durable.ts';
import type { LineOwners } from './file-kinds.ts';
import { mayHold } from './search-file.ts';

const LINE_FEED = Buffer.from('\n');

/** What a file holds, as its manifest line says it. Lines that are no records do not count. */
export class Contents {
  records = 0;
  first: string | null = null;
  last: string | null = null;
  readonly #types = new Map<string, number>();

  get types(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#types);
  }

  /** @param line without its line break */
  add(line: Buffer): void {
    const sealed = isSealed(line) ? parseSealed(line) : null;
    const head = sealed === null ? parseHead(line)?.record : null;
    const at = sealed?.received_at ?? head?.received_at;
    if (at === undefined) return;
    const type = head?.event_type ?? SEALED_TYPE;
    this.records += 1;
    this.#types.set(type, (this.#types.get(type) ?? 0) + 1);
    // ISO 8601 in UTC with a fixed number of digits: the order of the texts is the order of the times.
    if (this.first === null || at < this.first) this.first = at;
    if (this.last === null || at > this.last) this.last = at;
  }
}

/** What rewriting a file comes to, before anything has happened to the file itself. */
export interface Rewrite {
  /** Lines taken out, by request. */
  readonly removed: Readonly<Record<string, number>>;
  /** Entries of the log of receipts among them, base64, by request; absent where there are none. */
  readonly entries?: Readonly<Record<string, readonly string[]>>;
  /** Records taken out; absent where there are none. */
  readonly events?: readonly TakenOut[];
  readonly lines: number;
  readonly before: string;
  /** Null when no line is left, and the file is to go. */
  readonly after: { readonly sha256: string; readonly bytes: number } | null;
  /** Of the records that are left; absent where there are none. */
  readonly contents?: Contents;
}

/** What is rewritten, and where to. */
export interface Rewritten {
  readonly place: Bytes;
  readonly file: string;
  /** Path of the new file until it is put in place. */
  readonly temporary: string;
  /** Whoever could read the file still can. */
  readonly like: FileOwner | undefined;
}

/**
 * Writes the file anew, synced, without the lines that fall under a request. Every other line keeps its
 * bytes.
 * @returns null when there was nothing to take out
 */
export async function rewriteLines(
  { place, file, temporary, like }: Rewritten,
  owners: LineOwners,
  search: IdSearch,
  signal: AbortSignal,
): Promise<Rewrite | null> {
  const removed = new Map<string, number>();
  const entries = new Map<string, string[]>();
  const events: TakenOut[] = [];
  const contents = new Contents();
  const before = createHash('sha256');
  let lines = 0;
  let kept = 0;
  const keep = async function* (): AsyncGenerator<Buffer> {
    for await (const batch of fileLines(place, file, { onBytes: (chunk) => before.update(chunk) })) {
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
          events.push(takenOut(record, body));
          noteEntry(entries, requests, entryOfRecord(record, body));
          continue;
        }
        kept += 1;
        contents.add(line);
        pieces.push(line);
        if (ended) pieces.push(LINE_FEED);
      }
      if (pieces.length > 0) yield Buffer.concat(pieces);
    }
  };
  const after = await writeArchiveFile(temporary, keep, compressionOf(file) ?? 'none', signal, like);
  if (lines === 0 || kept === 0) {
    await unlink(temporary);
    // Before the file itself goes: then nobody would look for this one again.
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

/** The same of a file that is one event, and so one user's: it goes whole. */
export async function eventRewrite(place: Bytes, file: string, owners: LineOwners): Promise<Rewrite | null> {
  const requests = owners.ofEvent(await wholeEvent(place, file));
  if (requests.length === 0) return null;
  const removed = Object.fromEntries(requests.map((request) => [request, 1]));
  return { removed, lines: 1, before: (await hashFile(place, file)).sha256, after: null };
}

/** What the log of receipts has of a line that goes. */
function noteEntry(
  entries: Map<string, string[]>,
  requests: readonly string[],
  entry: ReturnType<typeof entryOfRecord>,
): void {
  if (entry === null) return;
  const text = entry.toString('base64');
  for (const request of requests) {
    const known = entries.get(request);
    if (known === undefined) entries.set(request, [text]);
    else known.push(text);
  }
}
