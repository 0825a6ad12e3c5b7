import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import type { CompactionLine, ErasureLine, FileLine, ManifestLine } from '../core/archive-manifest.ts';
import { compressionOf, DATA_EXTENSIONS, isCompacted } from '../core/archive.ts';
import type { Compression } from '../core/compression.ts';
import type { Manifest } from './manifest.ts';
import type { ArchiveListing } from './place.ts';
import { finishedNames } from './read.ts';

/** Most files of one compaction: its line names them all. */
const MOST_FILES = 1000;

/** Not zstd: Node reads only the first frame of a file. */
const JOINED: ReadonlySet<Compression | null> = new Set(['none', 'gzip']);

/** A file that can be joined with others. */
export type Candidate = (FileLine | ErasureLine) & { readonly sha256: string };

export interface PlanOptions {
  readonly targetBytes: number;
  /** Milliseconds since the epoch; the writer of a younger file may not be done. */
  readonly before: number;
}

/** Files that are listed, finished, small and old enough to be joined; and old enough files that are not listed. */
export async function candidatesOf(
  { place, files, parts }: ArchiveListing,
  { entries }: Pick<Manifest, 'entries'>,
  { targetBytes, before }: PlanOptions,
): Promise<{ readonly found: readonly Candidate[]; readonly unlisted: readonly string[] }> {
  // A crash can leave a part beside its file; the writer that takes it up looks for the file.
  const open = new Set(parts.flatMap((part) => finishedNames(part)));
  const found: Candidate[] = [];
  const unlisted: string[] = [];
  for (const file of files) {
    if (open.has(file)) continue;
    const line = entries.get(file);
    if (line !== undefined && (!isJoinable(line) || !JOINED.has(compressionOf(file)))) continue;
    if (line !== undefined && line.bytes >= targetBytes / 2) continue;
    const state = await place.stat(file);
    if (state === null || !(isCompacted(file) || state.modifiedAt <= before)) continue;
    if (line === undefined) unlisted.push(file);
    else found.push(line);
  }
  return { found, unlisted };
}

function isJoinable(line: ManifestLine): line is Candidate {
  return !('claim_check' in line) && line.sha256 !== null && line.records > 0;
}

/** Groups of at least two files of one folder and compression, in order of time, each no larger than the target. */
export function groupsOf(candidates: readonly Candidate[], targetBytes: number): Candidate[][] {
  const groups: Candidate[][] = [];
  const alikes = Map.groupBy(candidates, ({ file }) => `${dirname(file)} ${extensionOf(file)}`);
  for (const alike of alikes.values()) {
    let group: Candidate[] = [];
    let bytes = 0;
    for (const one of alike.toSorted(byTime)) {
      if (group.length === MOST_FILES || bytes + one.bytes > targetBytes) {
        groups.push(group);
        group = [];
        bytes = 0;
      }
      group.push(one);
      bytes += one.bytes;
    }
    groups.push(group);
  }
  return groups.filter(({ length }) => length > 1);
}

function byTime(one: Candidate, other: Candidate): number {
  const [a, b] = [one.first_received_at ?? '', other.first_received_at ?? ''];
  if (a === b) return one.file < other.file ? -1 : 1;
  return a < b ? -1 : 1;
}

/** The line of the new file. Its name follows from the files, so that a second run finds what a killed one has put. */
export function lineOf(
  group: readonly Candidate[],
  { bytes, sha256 }: Pick<CompactionLine, 'bytes' | 'sha256'>,
): Omit<CompactionLine, 'previous'> {
  const replaces = group.map((one) => {
    return { file: one.file, records: one.records, bytes: one.bytes, sha256: one.sha256 };
  });
  const inTurn = group
    .flatMap(({ first_received_at: first, last_received_at: last }) => [first ?? '', last ?? ''])
    .filter((time) => time !== '')
    .toSorted();
  const types = new Map<string, number>();
  for (const one of group)
    for (const [type, count] of Object.entries(one.types)) types.set(type, (types.get(type) ?? 0) + count);
  return {
    file: nameOf(group, inTurn[0] ?? ''),
    records: replaces.reduce((sum, { records }) => sum + records, 0),
    bytes,
    sha256,
    first_received_at: inTurn[0] ?? '',
    last_received_at: inTurn.at(-1) ?? '',
    types: Object.fromEntries(types),
    replaces,
  };
}

function nameOf(group: readonly Candidate[], first: string): string {
  const [{ file } = { file: '' }] = group;
  const at = file.lastIndexOf('/') + 1;
  const time = first.replaceAll(/[-:.]/g, '');
  const of = JSON.stringify(group.map(({ file: name, sha256 }) => [name, sha256]));
  const hash = createHash('sha256').update(of).digest('hex').slice(0, 16);
  const stem = `${/^\d{8}T\d{9}Z$/.test(time) ? `${time}-` : ''}compacted-${hash}`;
  return `${file.slice(0, at)}${stem}${extensionOf(file)}`;
}

function extensionOf(file: string): string {
  return DATA_EXTENSIONS[compressionOf(file) ?? 'none'];
}
