import { MANIFEST } from '../core/archive.ts';
import { MillraceError } from '../core/errors.ts';
import type { Verifier } from '../core/verifier.ts';
import { checkFile } from './check-file.ts';
import { listArchive } from './list.ts';
import { readManifest } from './manifest.ts';
import { Tally, type VerifyReport } from './report.ts';

export type { VerifyReport } from './report.ts';

export interface VerifyOptions {
  /** Checks each record's signature at the time of its receipt. Give it a boundless tolerance, lest clocks matter. */
  readonly verifier?: Verifier;
  readonly signal?: AbortSignal;
  /** Told before each file: how many are done, and how many there are. */
  readonly onProgress?: (done: number, total: number, file: string) => void;
}

/**
 * Holds every file of an archive against its manifest: sizes, hashes, counts, types, the manifest's own chain and, with
 * a verifier, each record's signature over its exact bytes. Reads each file once, in constant memory.
 *
 * What is finished while it runs is reported as extra or unfinished; stop the receiver for a clean answer.
 * @param path the archive's folder
 * @throws MillraceError archive_unreadable
 */
export async function verifyArchive(path: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const { root, files, parts, notFollowed, hasManifest, isFolder } = await listArchive(path);
  if (!isFolder)
    throw new MillraceError('archive_unreadable', `${path} is a file; name the archive's folder`);
  if (!hasManifest && files.length === 0 && parts.length === 0) {
    throw new MillraceError(
      'archive_unreadable',
      `${path} holds no archive: neither ${MANIFEST} nor *.ndjson*`,
    );
  }
  const tally = new Tally();
  const manifest = hasManifest ? await readManifest(root) : null;
  if (manifest === null) {
    tally.differ({ code: 'manifest_missing', file: MANIFEST, line: null, detail: 'there is none' });
  }
  for (const difference of manifest?.differences ?? []) tally.differ(difference);
  for (const file of manifest?.superseded ?? [])
    tally.note(file, 'listed more than once; the last line counts');
  for (const file of notFollowed) {
    tally.differ({ code: 'file_not_followed', file, line: null, detail: 'not a plain file; not followed' });
  }
  for (const file of parts) {
    tally.note(file, 'unfinished: a receiver is running, or was not stopped in an orderly way');
  }
  const present = new Set([...files, ...notFollowed]);
  for (const file of manifest?.entries.keys() ?? []) {
    if (present.has(file)) continue;
    tally.differ({ code: 'file_missing', file, line: null, detail: `listed in ${MANIFEST}, not there` });
  }
  for (const [done, file] of files.entries()) {
    options.onProgress?.(done, files.length, file);
    await checkFile(root, file, manifest?.entries.get(file) ?? null, tally, options);
  }
  return tally.report(root);
}
