import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { CompactionLine } from '../core/archive-manifest.ts';
import { messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { StorageError, WHAT_TO_DO } from '../core/storage.ts';
import { mapAtMost } from '../lib/map-at-most.ts';
import { lineOf, type Candidate } from './compact-plan.ts';
import { AT_ONCE, type CompactPlace, type FileProblem } from './compact-place.ts';
import { fileChunks } from './file-lines.ts';
import { countLines } from '../lib/lines.ts';

const LINE_FEED = 10;
const DIFFERS = 'it is not as the manifest says; see `millrace archive verify`';
const CHANGED = 'it was changed during the compaction; the next run joins it';

export type Joined =
  | { readonly line: Omit<CompactionLine, 'previous'>; readonly left: readonly FileProblem[] }
  /** Files that cannot be joined, at least one; nothing was changed. */
  | { readonly bad: readonly FileProblem[] };

/** Steps of a compaction; tests kill the process after each. */
export type CompactStep = 'read' | 'put' | 'listed' | 'removed';

export interface JoinOptions {
  readonly signal: AbortSignal;
  readonly onStep?: (step: CompactStep) => void;
}

/**
 * Makes one file of several: their bytes one after another.
 * @throws StorageError, MillraceError archive_in_use; the next run continues from there
 */
export async function joinFiles(
  place: CompactPlace,
  group: readonly Candidate[],
  { signal, onStep }: JoinOptions,
): Promise<Joined> {
  const { bad, bytes, versions } = await readGroup(place, group, signal);
  if (bad !== undefined) return { bad };
  onStep?.('read');
  const line = lineOf(group, { bytes: bytes.length, sha256: hash('sha256', bytes, 'hex') });
  const changed = await changedOf(place, versions);
  if (changed.length > 0) return { bad: changed };
  await place.check();
  signal.throwIfAborted();
  const first = group[0]?.file ?? '';
  const version = await place.put(line.file, bytes, first);
  onStep?.('put');
  // An erasure may have changed one of them since it was read, before there was a new file to erase from.
  const since = await changedOf(place, new Map([...versions, [line.file, version]]));
  try {
    await place.check();
  } catch (error) {
    await withdraw(place, line.file, bytes, first);
    throw error;
  }
  if (since.length > 0) {
    await withdraw(place, line.file, bytes, first);
    return { bad: since.map(({ file, reason }) => ({ file: file === line.file ? first : file, reason })) };
  }
  await place.list(line);
  onStep?.('listed');
  // A process that stood still for long may have lost it to another compaction.
  if ((await place.store.head(line.file)) === null) {
    const reason = `was removed during the compaction; its ${line.bytes} bytes are still in the files it was made of`;
    return { line, left: [{ file: line.file, reason }] };
  }
  const left = await place.remove([...versions.keys()], { versions, onRemoved: () => onStep?.('removed') });
  return { line, left };
}

/** @returns the bytes of all files, one after another, and the version of each */
async function readGroup(place: CompactPlace, group: readonly Candidate[], signal: AbortSignal) {
  const bytes = Buffer.allocUnsafeSlow(group.reduce((sum, one) => sum + one.bytes, 0));
  let end = 0;
  const targets = group.map(({ bytes: size }) => bytes.subarray(end, (end += size)));
  const read = await mapAtMost(AT_ONCE, group, (one, nth) =>
    readInto(targets[nth] ?? bytes, place, one, signal),
  );
  const bad = read.flatMap((one) => ('reason' in one ? one : []));
  if (bad.length > 0) return { bad };
  return {
    bytes,
    versions: new Map(read.flatMap((one) => ('version' in one ? [[one.file, one.version]] : []))),
  };
}

async function changedOf(
  { store }: CompactPlace,
  versions: ReadonlyMap<string, string>,
): Promise<FileProblem[]> {
  const changed = await mapAtMost(AT_ONCE, [...versions], async ([file, version]) =>
    (await store.head(file))?.version === version ? [] : [{ file, reason: CHANGED }],
  );
  return changed.flat();
}

/** Removes a new file, which may hold erased records, unless another compaction has put and listed the same. */
async function withdraw(place: CompactPlace, file: string, made: Buffer, like: string): Promise<void> {
  if (await place.isListed(file)) return;
  await place.remove([file], { andVersions: true });
  // Listed since: its old files may be gone. From now on a compaction that lists it finds it missing, and keeps them.
  if (await place.isListed(file)) await place.put(file, made, like);
}

/** Reads one version of a file, which must be complete and as the manifest says. */
async function readInto(
  target: Buffer,
  { store }: CompactPlace,
  { file, bytes, sha256, records }: Candidate,
  signal: AbortSignal,
): Promise<FileProblem | { readonly file: string; readonly version: string }> {
  const there = await store.head(file, signal);
  if (there?.bytes !== bytes) return { file, reason: DIFFERS };
  let at = 0;
  try {
    for await (const chunk of store.get(file, { version: there.version, signal })) {
      chunk.copy(target, at);
      at += chunk.length;
    }
  } catch (error) {
    const fault = error instanceof StorageError ? error.fault : null;
    if (fault === 'changed' || fault === 'missing') return { file, reason: CHANGED };
    if (fault === 'archived') return { file, reason: `${messageOf(error)}: ${WHAT_TO_DO.archived}` };
    // A disk can fail in one place; a store that does not answer ends the run.
    if (isStoreUrl(store.url) || signal.aborted) throw error;
    return { file, reason: `cannot be read: ${messageOf(error)}` };
  }
  if (at !== bytes || hash('sha256', target, 'hex') !== sha256) return { file, reason: DIFFERS };
  const reason = await defectOf(file, target, records);
  return reason === null ? { file, version: there.version } : { file, reason };
}

/** Why other bytes cannot follow those of a file; null when they can. */
async function defectOf(file: string, bytes: Buffer, records: number): Promise<string | null> {
  let lines = 0;
  let last = LINE_FEED;
  try {
    for await (const chunk of fileChunks({ chunks: () => Readable.from([bytes]) }, file)) {
      lines += countLines(chunk);
      last = chunk.at(-1) ?? last;
    }
  } catch (error) {
    return `cannot be read to its end: ${messageOf(error)}`;
  }
  if (last !== LINE_FEED) return 'its last line has no end';
  return lines === records ? null : `${lines} lines instead of ${records}`;
}
