import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import express, { type Router } from 'express';
import { MANIFEST, OPEN_FOLDER, PART_EXTENSION } from '../../core/archive.ts';
import { isCompaction, parseManifestLine, type ManifestLine } from '../../core/archive-manifest.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { isMissing, openPlain, READ } from '../../lib/durable.ts';
import { lastEnd, lineBefore } from '../../lib/tail.ts';
import { wholeNumber } from './api.ts';

/** An archive that a sink of the config writes. */
export interface SinkArchive {
  readonly sink: string;
  /** Path or URL. */
  readonly path: string;
  readonly isSealed: boolean;
}

/** Lists the files of archives, as their manifests name them. */
export function filesApi(archives: () => readonly SinkArchive[]): Router {
  const api = express.Router();
  api.get('/', async ({ query: { sink, before } }, response) => {
    const archive = archives().find((each) => each.sink === sink);
    if (archive === undefined)
      throw new MillraceError('usage', 'sink must be the name of one with an archive');
    if (isStoreUrl(archive.path))
      throw new MillraceError(
        'usage',
        `${archive.sink} writes to an object store: only archives in folders are listed`,
      );
    const page = await newestFiles(archive.path, before === undefined ? null : wholeNumber(before));
    // Null where nothing outside of millrace can read the records.
    response.json({ ...page, path: archive.isSealed ? null : resolve(archive.path) });
  });
  return api;
}

/** What a line of a manifest says of a file. */
export interface ListedFile {
  readonly file: string;
  /** `removed` by an erasure: it is there no more. */
  readonly state: 'closed' | 'compacted' | 'kept' | 'erased' | 'removed';
  /** Null for an event that was kept whole. */
  readonly records: number | null;
  readonly bytes: number;
  readonly first_received_at: string | null;
  readonly last_received_at: string | null;
  /** Files that this one stands for. */
  readonly replaces: readonly string[];
}

export interface FilesPage {
  /** Newest line first. A file may have older lines, which do not count any more. */
  readonly files: readonly ListedFile[];
  /** Files that are open now; null when that cannot be told. */
  readonly parts: number | null;
  /** The same question with `before` this goes on; null at the beginning of the manifest. */
  readonly next: number | null;
}

/** Lines of one page. */
const MOST = 100;
/** Bytes after which a page ends: the line of a compaction names all that it replaced. */
const MOST_BYTES = 4 * 1024 * 1024;

/**
 * The end of the manifest of an archive in a folder. What it says is taken as it stands: nothing is verified, no data is read.
 * @param before position in the manifest, as a page before has given it; null for its end
 * @throws MillraceError archive_unreadable
 */
export async function newestFiles(root: string, before: number | null): Promise<FilesPage> {
  try {
    const [{ files, next }, parts] = await Promise.all([
      readLines(join(root, MANIFEST), before),
      openParts(root),
    ]);
    return { files, parts, next };
  } catch (error) {
    throw new MillraceError('archive_unreadable', messageOf(error), { cause: error });
  }
}

async function readLines(path: string, before: number | null): Promise<Pick<FilesPage, 'files' | 'next'>> {
  const handle = await openPlain(path, READ).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  // Nothing was closed yet.
  if (handle === null) return { files: [], next: null };
  try {
    const { size } = await handle.stat();
    const files: ListedFile[] = [];
    let at = await lastEnd(handle, Math.min(before ?? size, size));
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

/** Folders of unfinished files come and go while a receiver runs. */
async function openParts(root: string): Promise<number | null> {
  try {
    const names = await readdir(join(root, OPEN_FOLDER), { recursive: true });
    return names.filter((name) => name.endsWith(PART_EXTENSION)).length;
  } catch {
    return null;
  }
}
