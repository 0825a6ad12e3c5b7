import { isCompacted, MANIFEST } from '../core/archive.ts';
import { COMPACTIONS, parseSegmentKey } from '../core/archive-segments.ts';
import type { CompactionLine } from '../core/archive-manifest.ts';
import { cutLines } from '../lib/lines.ts';
import { Compactions } from './compactions.ts';
import { readManifest } from './manifest.ts';
import type { ArchivePlace } from './place.ts';

/** In each line of a compaction, as it is written; in a text of another line the quotes would be escaped. */
const MARK = Buffer.from('"replaces":[');

/** What was found in an archive. */
interface Found {
  readonly files: readonly string[];
  readonly manifest: readonly string[];
}

/**
 * Tells files that count from those that do not: what a compaction has replaced and not removed yet, and what one has made
 * and not listed. So each event is read once, wherever a compaction is, or was ended.
 */
export async function standing(
  place: ArchivePlace,
  { files, manifest }: Found,
): Promise<{ readonly files: readonly string[]; readonly aside: readonly string[] }> {
  const lines = await compactionLines(place, manifest);
  if (lines.size === 0 && !files.some(isCompacted)) return { files, aside: [] };
  const compactions = new Compactions(lines);
  const all = new Set(files);
  // One that was put behind the back of who made the list, and what it replaces is gone from the rest of the list already.
  for (const file of lines.keys())
    if (!all.has(file) && compactions.madeOf(file).length === 0 && (await place.stat(file)) !== null)
      all.add(file);
  const stands = (file: string): boolean => all.has(file);
  const isAside = (file: string): boolean =>
    (isCompacted(file) && !lines.has(file)) || compactions.isReplaced(file, stands);
  const inTurn = [...all].toSorted();
  return { files: inTurn.filter((file) => !isAside(file)), aside: inTurn.filter(isAside) };
}

/** Reads no more of a manifest than it has to: most archives were never compacted. */
async function compactionLines(
  place: ArchivePlace,
  manifest: readonly string[],
): Promise<ReadonlyMap<string, CompactionLine>> {
  const own = manifest.filter((file) => parseSegmentKey(file)?.writer === COMPACTIONS);
  if (manifest.includes(MANIFEST) && (await hasMark(place))) own.push(MANIFEST);
  if (own.length === 0) return new Map();
  return (await readManifest({ place, manifest: own })).compactions;
}

async function hasMark(place: ArchivePlace): Promise<boolean> {
  for await (const lines of cutLines(place.chunks(MANIFEST)))
    for (const { bytes } of lines) if (bytes?.includes(MARK) === true) return true;
  return false;
}
