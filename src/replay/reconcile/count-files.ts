import { readManifest, type Manifest } from '../../archive/manifest.ts';
import type { Places } from '../../archive/places.ts';
import { readListed } from '../../archive/read.ts';
import type { ArchiveItem } from '../../archive/read-line.ts';
import { CLAIMS_FOLDER, isCompacted } from '../../core/archive.ts';
import type { ManifestLine } from '../../core/archive-manifest.ts';
import { parseEnvelope, type RecordEnvelope } from '../../core/archive-record.ts';
import type { Owners } from '../../core/erasure.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { NAMED } from './report.ts';
import type { Window } from './window.ts';

/** Records of a window in the files of a sink, beside those that `onRecord` was called for. */
export class FilesCount {
  /** Sealed records whose key an erasure has destroyed. */
  destroyed = 0;
  /** Sealed records that no available key opens. */
  closed = 0;
  /** Records that erasures have removed from files of this window. */
  erased = 0;
  readonly problems: Problem[] = [];
}

interface Problem {
  readonly file: string;
  readonly line: number | null;
  readonly reason: string;
}

export interface FilesOptions {
  readonly places: Places;
  readonly opener?: RecordOpener | undefined;
  readonly signal: AbortSignal;
  /** Users of a running erasure, whose records may be gone from some places only. */
  readonly leaving?: Owners | null;
  /** Called after `onRecord` for a record of such a user. */
  readonly onLeaving?: (id: string) => void;
  readonly onRecord: (item: ArchiveItem<RecordEnvelope> & { kind: 'record' }) => void;
  readonly onFile?: (file: string) => void;
}

/**
 * Reads the records that were received in a window, also from unfinished files, and adds them to `count`. Files that
 * are outside by the manifest are not opened.
 * @throws MillraceError archive_unreadable; `count` is unchanged then
 */
export async function countFiles(
  path: string,
  window: Window,
  options: FilesOptions,
  count = new FilesCount(),
): Promise<FilesCount> {
  const { places } = options;
  // Not `listArchive`: a store can be empty still.
  const listing = await (await places.open(path)).list();
  const { files } = listing;
  const isInside = insideOf(window);
  const erasures = new ErasedRecords(window);
  const manifest = await readManifest(listing, { onEntry: (entry) => erasures.take(entry) });
  const lines = manifest.entries;
  const outside = new Set(files.filter((file) => isOutside(lines.get(file), window)));
  const own = new FilesCount();
  let before = '';
  const { opener, signal, leaving = null, onLeaving } = options;
  const reading = { parts: true, skip: outside, opener, signal, places, frees: true };
  for await (const items of readListed(listing, parseEnvelope, reading)) {
    for (const item of items) {
      if (item.file !== before) options.onFile?.(item.file);
      before = item.file;
      if (item.kind === 'record') {
        if (!isInside(item.record.received_at)) continue;
        options.onRecord(item);
        const { id, team_id: team, user_id: user, client_user_id: clientUser } = item.record;
        if (leaving !== null && leaving.of({ team, user, clientUser }).length > 0) onLeaving?.(id);
      } else if (item.sealed !== undefined) {
        if (!isInside(item.sealed.received_at)) continue;
        if (item.sealed.why === 'erased') own.destroyed += 1;
        else own.closed += 1;
      } else if (own.problems.length < NAMED)
        own.problems.push({ file: item.file, line: item.line, reason: item.reason });
    }
  }
  count.destroyed += own.destroyed;
  count.closed += own.closed;
  count.erased += erasures.count(manifest);
  count.problems.push(...own.problems);
  return count;
}

/** Compares texts where it can: they sort as their times, and parsing takes twenty times as long. */
function insideOf({ since, until }: Window): (at: string) => boolean {
  const [first, end] = [textOf(since), textOf(until)];
  return (at) => {
    if (at.length === first.length && at.length === end.length && at.endsWith('Z'))
      return at >= first && at < end;
    const time = Date.parse(at);
    return time >= since && time < until;
  };
}

/** Empty for infinity. */
function textOf(time: number): string {
  return Number.isFinite(time) ? new Date(time).toISOString() : '';
}

/** Whether nothing of a file was received in the window, by its newest line. */
function isOutside(line: ManifestLine | undefined, { since, until }: Window): boolean {
  if (line === undefined || !('first_received_at' in line)) return false;
  const { first_received_at: first, last_received_at: last, records } = line;
  if (records === 0 || first === null || last === null) return false;
  return Date.parse(last) < since || Date.parse(first) >= until;
}

/** Counts erased records. A file partly in the window counts whole: the times of its removed records are lost. */
class ErasedRecords {
  readonly #window: Window;
  readonly #outside = new Map<string, boolean>();
  /** The erasures of each file in order, with its hash after each. */
  readonly #erasures = new Map<string, { readonly removed: number; readonly sha256: string | null }[]>();

  constructor(window: Window) {
    this.#window = window;
  }

  take(entry: ManifestLine): void {
    const { file, sha256 } = entry;
    if (file.startsWith(`${CLAIMS_FOLDER}/`)) return;
    const wasOutside = this.#outside.get(file) ?? isOutside(entry, this.#window);
    if ('erasure' in entry && !wasOutside) {
      getOrMake(this.#erasures, file, () => []).push({ removed: entry.removed, sha256 });
    }
    // A removed file keeps the span it had.
    if (sha256 !== null) this.#outside.set(file, isOutside(entry, this.#window));
  }

  /** Later erasures of a compacted file are counted in the new one; all of a compaction's file that was never listed. */
  count({ compactions }: Manifest): number {
    const replaced = new Map<string, string>();
    for (const { replaces } of compactions.values())
      for (const { file, sha256 } of replaces) replaced.set(file, sha256);
    let count = 0;
    for (const [file, erasures] of this.#erasures) {
      const joined = replaced.get(file);
      const isUnlisted = isCompacted(file) && !compactions.has(file);
      const last = isUnlisted
        ? -1
        : erasures.findLastIndex(({ sha256 }) => joined === undefined || sha256 === joined);
      for (const { removed } of erasures.slice(0, last + 1)) count += removed;
    }
    return count;
  }
}
