import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Router } from 'express';
import { MANIFEST, OPEN_FOLDER, PART_EXTENSION } from '../../core/archive.ts';
import { isCompaction, parseManifestLine, type ManifestLine } from '../../core/archive-manifest.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { ignoreMissing, isMissing, openPlain, READ } from '../../lib/durable.ts';
import { endOfComplete, lineBefore, readTail } from '../../lib/tail.ts';
import { wholeNumber } from './api.ts';
import { answering } from './problem.ts';

/** An archive that a sink of the config writes. */
export interface SinkArchive {
  readonly sink: string;
  /** Path or URL. */
  readonly path: string;
  readonly isSealed: boolean;
}

/** Lists the files of archives by their manifests. */
export function filesApi(archives: () => readonly SinkArchive[]): Router {
  return answering({
    'GET /': async ({ query: { sink, before } }) => {
      const archive = archives().find((each) => each.sink === sink);
      if (archive === undefined) throw new MillraceError('usage', 'sink must be a sink with an archive');
      if (isStoreUrl(archive.path))
        throw new MillraceError(
          'usage',
          `${archive.sink} writes to an object store: only archives in folders are listed`,
        );
      const page = await newestFiles(archive.path, before === undefined ? null : wholeNumber(before));
      // Null for sealed records, which other programs cannot read.
      return { ...page, path: archive.isSealed ? null : resolve(archive.path) };
    },
  });
}

/** A file in a line of the manifest. */
export interface ListedFile {
  readonly file: string;
  /** `kept`: one large event; `removed`: deleted by an erasure. */
  readonly state: 'closed' | 'compacted' | 'kept' | 'erased' | 'removed';
  /** Null for `kept`. */
  readonly records: number | null;
  readonly bytes: number;
  readonly first_received_at: string | null;
  readonly last_received_at: string | null;
  /** Files that were joined into this one. */
  readonly replaces: readonly string[];
}

export interface FilesPage {
  /** Newest line first; older lines of the same file are obsolete. */
  readonly files: readonly ListedFile[];
  /** Number of open files; null when unknown. */
  readonly parts: number | null;
  /** `before` of the next page; null at the beginning of the manifest. */
  readonly next: number | null;
}

/** Lines and bytes of one page: the line of a compaction can be long. */
const MOST = 100;
const MOST_BYTES = 4 * 1024 * 1024;

/**
 * A page from the end of an archive's manifest, without any verification.
 * @param before `next` of the page before; null for the end
 * @throws MillraceError archive_unreadable
 */
export async function newestFiles(root: string, before: number | null): Promise<FilesPage> {
  try {
    // A missing folder would look like one without a manifest.
    await readdir(root);
    const [{ files, next }, parts] = await Promise.all([
      readLines(join(root, MANIFEST), before),
      openParts(root),
    ]);
    return { files, parts, next };
  } catch (error) {
    const advice = isMissing(error) ? `: is the disk of ${root} mounted?` : '';
    throw new MillraceError('archive_unreadable', `${messageOf(error)}${advice}`, { cause: error });
  }
}

async function readLines(path: string, before: number | null): Promise<Pick<FilesPage, 'files' | 'next'>> {
  const handle = await openPlain(path, READ).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  // No file was closed yet.
  if (handle === null) return { files: [], next: null };
  try {
    const { size } = await handle.stat();
    const files: ListedFile[] = [];
    const { bytes, from } = await readTail(handle, Math.min(before ?? size, size));
    let at = endOfComplete(bytes, from);
    for (let n = 0, read = 0; at > 0 && n < MOST && read < MOST_BYTES; n += 1) {
      const line = await lineBefore(handle, at);
      at -= line.length + 1;
      read += line.length;
      const entry = parseManifestLine(line.toString());
      if (entry !== null) files.push(listed(entry));
    }
    return { files, next: at > 0 ? at : null };
  } finally {
    await handle.close();
  }
}

function listed(line: ManifestLine): ListedFile {
  const { file, bytes } = line;
  const unknown = { records: null, first_received_at: null, last_received_at: null, replaces: [] };
  if ('claim_check' in line) return { file, state: 'kept', bytes, ...unknown };
  const { records, first_received_at, last_received_at } = line;
  const common = { file, records, bytes, first_received_at, last_received_at, replaces: [] };
  if ('erasure' in line) return { ...common, state: line.sha256 === null ? 'removed' : 'erased' };
  if (isCompaction(line))
    return { ...common, state: 'compacted', replaces: line.replaces.map((replaced) => replaced.file) };
  return { ...common, state: 'closed' };
}

/** Null when there is no folder of open files, or folders in it go during the count. */
async function openParts(root: string): Promise<number | null> {
  const names = await readdir(join(root, OPEN_FOLDER), { recursive: true }).catch(ignoreMissing);
  return names?.filter((name) => name.endsWith(PART_EXTENSION)).length ?? null;
}
