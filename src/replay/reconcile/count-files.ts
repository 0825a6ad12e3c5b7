import { readManifest, type Manifest } from '../../archive/manifest.ts';
import type { Places } from '../../archive/places.ts';
import { readListed } from '../../archive/read.ts';
import type { ArchiveItem } from '../../archive/read-line.ts';
import { CLAIMS_FOLDER, isCompacted } from '../../core/archive.ts';
import type { ManifestLine } from '../../core/archive-manifest.ts';
import {
  parseEnvelope,
  parseSummary,
  type RecordEnvelope,
  type RecordSummary,
} from '../../core/archive-record.ts';
import type { Owners } from '../../core/erasure.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Window } from './window.ts';

/** What the files of one archive hold of a window. */
export interface FilesCount {
  readonly records: number;
  /** Records whose key an erasure destroyed, so that nobody can say which they are. */
  readonly destroyed: number;
  /** Sealed records that no key at hand opens, although none was destroyed. */
  readonly closed: number;
  /** Records an erasure took out of files of this window. */
  readonly erased: number;
  readonly problems: readonly Problem[];
  readonly passedOver: number;
}

interface Problem {
  readonly file: string;
  readonly line: number | null;
  readonly reason: string;
}

export interface FilesOptions {
  /** Where archives are opened. */
  readonly places: Places;
  readonly opener?: RecordOpener | undefined;
  readonly signal: AbortSignal;
  /** Users whose records may be gone from some places, and not from others. */
  readonly leaving?: Owners | null;
  /** The id of a record of theirs, which `onRecord` was told of before. */
  readonly onLeaving?: (id: string) => void;
  readonly onRecord: (item: ArchiveItem<RecordSummary> & { kind: 'record' }) => void;
  readonly onFile?: (file: string) => void;
}

const NAMED = 20;

/**
 * Reads the records an archive holds of a window of receipt, the unfinished ones too. Files that the manifest says lie
 * outside are passed over.
 * @throws MillraceError archive_unreadable
 */
export async function countFiles(path: string, window: Window, options: FilesOptions): Promise<FilesCount> {
  const { places } = options;
  // Nothing has been written yet where a store is empty.
  const listing = await (await places.open(path)).list();
  const { files } = listing;
  const isInside = insideOf(window);
  const erasures = new ErasedRecords(window);
  const manifest = await readManifest(listing, { onEntry: (entry) => erasures.take(entry) });
  const lines = manifest.entries;
  const outside = new Set(files.filter((file) => isOutside(lines.get(file), window)));
  const problems: Problem[] = [];
  let records = 0;
  let destroyed = 0;
  let closed = 0;
  let before = '';
  const { opener, signal, leaving = null, onLeaving } = options;
  const reading = { parts: true, skip: outside, opener, signal, places, frees: true };
  for await (const items of readListed(listing, leaving === null ? parseSummary : parseEnvelope, reading)) {
    for (const item of items) {
      if (item.file !== before) options.onFile?.(item.file);
      before = item.file;
      if (item.kind === 'record') {
        if (!isInside(item.record.received_at)) continue;
        records += 1;
        options.onRecord(item);
        if (leaving !== null && isOf(leaving, item.record)) onLeaving?.(item.record.id);
      } else if (item.sealed !== undefined) {
        if (!isInside(item.sealed.received_at)) continue;
        if (item.sealed.why === 'erased') destroyed += 1;
        else closed += 1;
      } else if (problems.length < NAMED)
        problems.push({ file: item.file, line: item.line, reason: item.reason });
    }
  }
  return { records, destroyed, closed, erased: erasures.count(manifest), problems, passedOver: outside.size };
}

function isOf(users: Owners, record: RecordSummary & Partial<RecordEnvelope>): boolean {
  const { team_id: team = null, user_id: user = null, client_user_id: clientUser = null } = record;
  return users.of({ team, user, clientUser }).length > 0;
}

/** Whether a time lies in a window. Texts of one length sort as their times do, and parsing one takes twenty times as long. */
function insideOf({ since, until }: Window): (at: string) => boolean {
  const [first, end] = [textOf(since), textOf(until)];
  return (at) => {
    if (at.length === first.length && at.length === end.length && at.endsWith('Z'))
      return at >= first && at < end;
    const time = Date.parse(at);
    return time >= since && time < until;
  };
}

/** Empty for a time without an end. */
function textOf(time: number): string {
  return Number.isFinite(time) ? new Date(time).toISOString() : '';
}

/** A file whose newest line says that nothing of it was received in the window. */
function isOutside(line: ManifestLine | undefined, { since, until }: Window): boolean {
  if (line === undefined || !('first_received_at' in line)) return false;
  const { first_received_at: first, last_received_at: last, records } = line;
  if (records === 0 || first === null || last === null) return false;
  return Date.parse(last) < since || Date.parse(first) >= until;
}

/** Counted whole for a file that lies in the window only in part: when a removed record was received is gone with it. */
class ErasedRecords {
  readonly #window: Window;
  readonly #outside = new Map<string, boolean>();
  /** What was taken out of each file, and what it was after that, in order. */
  readonly #taken = new Map<string, { readonly removed: number; readonly sha256: string | null }[]>();

  constructor(window: Window) {
    this.#window = window;
  }

  take(entry: ManifestLine): void {
    const { file, sha256 } = entry;
    if (file.startsWith(`${CLAIMS_FOLDER}/`)) return;
    const wasOutside = this.#outside.get(file) ?? isOutside(entry, this.#window);
    if ('erasure' in entry && !wasOutside) {
      getOrMake(this.#taken, file, () => []).push({ removed: entry.removed, sha256 });
    }
    // A removed file keeps the span it had.
    if (sha256 !== null) this.#outside.set(file, isOutside(entry, this.#window));
  }

  /** Of a file that a compaction replaced, what was taken out later was in the new file too; of one it never listed, all was. */
  count({ compactions }: Manifest): number {
    const replaced = new Map<string, string>();
    for (const { replaces } of compactions.values())
      for (const { file, sha256 } of replaces) replaced.set(file, sha256);
    let count = 0;
    for (const [file, taken] of this.#taken) {
      const joined = replaced.get(file);
      const isUnlisted = isCompacted(file) && !compactions.has(file);
      const last = isUnlisted
        ? -1
        : taken.findLastIndex(({ sha256 }) => joined === undefined || sha256 === joined);
      for (const { removed } of taken.slice(0, last + 1)) count += removed;
    }
    return count;
  }
}
