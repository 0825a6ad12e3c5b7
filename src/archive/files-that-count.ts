import { hash } from 'node:crypto';
import { dirname } from 'node:path';
import { isCompacted, MANIFEST } from '../core/archive.ts';
import { COMPACTIONS, parseSegmentKey } from './segments.ts';
import type { CompactionLine } from '../core/archive-manifest.ts';
import { MillraceError } from '../core/errors.ts';
import { cutLines, type Line } from '../lib/lines.ts';
import { Compactions } from './compactions.ts';
import { fileLines } from './file-lines.ts';
import { readManifest } from './manifest.ts';
import type { ArchiveListing, ArchivePlace } from './place.ts';

/** In each line of a compaction; inside a text of another line the quotes would be escaped. */
const COMPACTION_KEY = Buffer.from('"replaces":[');

/**
 * Separates files that count from those that a compaction has replaced and not removed yet, or made and not listed. So
 * each event is read once, wherever a compaction was killed.
 */
export async function filesThatCount(
  place: ArchivePlace,
  { files, manifest }: Pick<ArchiveListing, 'files' | 'manifest'>,
): Promise<Pick<ArchiveListing, 'files' | 'aside'>> {
  // A part of an archive: all count.
  if (manifest.length === 0) return { files, aside: [] };
  const lines = await compactionLines(place, manifest);
  if (lines.size === 0 && !files.some(isCompacted)) return { files, aside: [] };
  const compactions = new Compactions(lines);
  const all = new Set(files);
  // A file put during the listing, whose old files may be missing in it.
  for (const file of lines.keys())
    if (!all.has(file) && compactions.madeOf(file).length === 0 && (await place.stat(file)) !== null)
      all.add(file);
  const stands = (file: string): boolean => all.has(file);
  const unlisted = [...all].filter((file) => isCompacted(file) && !lines.has(file));
  const isReplaced = (file: string): boolean => compactions.isReplaced(file, stands);
  const others = [...all].filter((file) => !unlisted.includes(file) && !isReplaced(file));
  const repeated = await repeatedOf(place, manifest, { unlisted, others });
  const isAside = (file: string): boolean => repeated.has(file) || isReplaced(file);
  const inOrder = [...all].toSorted();
  return { files: inOrder.filter((file) => !isAside(file)), aside: inOrder.filter(isAside) };
}

/**
 * Unlisted files of a compaction that was killed: all their lines are in other files too. If not, the manifest is an
 * older one, and they may hold the only copy.
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
    const beside = others.filter((other) => dirname(other) === dirname(file));
    // A repair may have listed it.
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

/** Reads only what can have lines of compactions: most archives were never compacted. */
async function compactionLines(
  place: ArchivePlace,
  manifest: readonly string[],
): Promise<ReadonlyMap<string, CompactionLine>> {
  const own = manifest.filter((file) => parseSegmentKey(file)?.writer === COMPACTIONS);
  if (manifest.includes(MANIFEST) && (await hasCompaction(place))) own.push(MANIFEST);
  if (own.length === 0) return new Map();
  return (await readManifest({ place, manifest: own })).compactions;
}

async function hasCompaction(place: ArchivePlace): Promise<boolean> {
  for await (const lines of cutLines(place.chunks(MANIFEST)))
    for (const { bytes } of lines) if (bytes?.includes(COMPACTION_KEY) === true) return true;
  return false;
}
