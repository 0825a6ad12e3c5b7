import { hash } from 'node:crypto';
import { isCompacted, MANIFEST } from '../core/archive.ts';
import { COMPACTIONS, parseSegmentKey } from '../core/archive-segments.ts';
import type { CompactionLine } from '../core/archive-manifest.ts';
import { MillraceError } from '../core/errors.ts';
import { cutLines, type Line } from '../lib/lines.ts';
import { Compactions } from './compactions.ts';
import { fileLines } from './file-lines.ts';
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
  // A folder of an archive, or a copy of it: there is nothing to tell them by.
  if (manifest.length === 0) return { files, aside: [] };
  const lines = await compactionLines(place, manifest);
  if (lines.size === 0 && !files.some(isCompacted)) return { files, aside: [] };
  const compactions = new Compactions(lines);
  const all = new Set(files);
  // One that was put behind the back of who made the list, and what it replaces is gone from the rest of the list already.
  for (const file of lines.keys())
    if (!all.has(file) && compactions.madeOf(file).length === 0 && (await place.stat(file)) !== null)
      all.add(file);
  const stands = (file: string): boolean => all.has(file);
  const unlisted = [...all].filter((file) => isCompacted(file) && !lines.has(file));
  const isReplaced = (file: string): boolean => compactions.isReplaced(file, stands);
  const others = [...all].filter((file) => !unlisted.includes(file) && !isReplaced(file));
  const repeated = await repeatedOf(place, manifest, { unlisted, others });
  const isAside = (file: string): boolean => repeated.has(file) || isReplaced(file);
  const inTurn = [...all].toSorted();
  return { files: inTurn.filter((file) => !isAside(file)), aside: inTurn.filter(isAside) };
}

/**
 * Of files that no compaction has listed, those all of whose lines lie in other files too: what a compaction had made when it
 * was ended. In another state the manifest is not the one that was there, and what they hold may be nowhere else.
 */
async function repeatedOf(
  place: ArchivePlace,
  manifest: readonly string[],
  { unlisted, others }: { readonly unlisted: readonly string[]; readonly others: readonly string[] },
): Promise<ReadonlySet<string>> {
  const repeated = new Set<string>();
  if (unlisted.length === 0) return repeated;
  const { entries } = await readManifest({ place, manifest });
  for (const file of unlisted) {
    const folder = folderOf(file);
    const beside = others.filter((other) => folderOf(other) === folder);
    // Listed by a repair, it counts.
    if (!entries.has(file) && (await isInside(place, file, beside))) repeated.add(file);
  }
  return repeated;
}

async function isInside(place: ArchivePlace, file: string, others: readonly string[]): Promise<boolean> {
  const left = new Set<string>();
  try {
    for await (const lines of fileLines(place, file)) for (const line of lines) left.add(digestOf(line));
    for (const other of others) {
      if (left.size === 0) break;
      for await (const lines of fileLines(place, other))
        for (const line of lines) left.delete(digestOf(line));
    }
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    return false;
  }
  return left.size === 0;
}

function digestOf({ bytes }: Line): string {
  return hash('sha256', bytes ?? '', 'base64');
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/') + 1);
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
