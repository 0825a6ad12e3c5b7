import { MANIFEST, PART_EXTENSION } from '../core/archive.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import type { FileFacts } from './facts.ts';
import { TEMPORARY_EXTENSION, type ArchiveListing } from './list.ts';
import type { Manifest } from './manifest.ts';
import type { Tally } from './report.ts';

/** What is wrong with the manifest itself, and what its lines say beside a file's contents. */
export function reportManifest(manifest: Manifest | null, tally: Tally, head: string | undefined): void {
  if (manifest === null) {
    tally.differ({ code: 'manifest_missing', file: MANIFEST, line: null, detail: 'there is none' });
    return;
  }
  tally.manifest = { lines: manifest.lines, head: manifest.head };
  for (const difference of manifest.differences) tally.differ(difference);
  if (head !== undefined && !manifest.hashes.has(head)) {
    const detail = `no line has the hash ${head}: the end that was there is cut off or changed`;
    tally.differ({ code: 'head_missing', file: MANIFEST, line: null, detail });
  }
  for (const [file, { erasure }] of manifest.returned) {
    const detail = `listed anew after erasure ${erasure} had changed it`;
    tally.differ({ code: 'file_returned', file, line: null, detail });
  }
  for (const [file, line] of manifest.entries) {
    if ('erasure' in line) {
      const what = line.sha256 === null ? 'the file removed' : `${line.removed} records removed`;
      tally.note(file, `${what} by erasure ${line.erasure} at ${line.at}`);
    } else if (line.repaired_at !== undefined) {
      tally.note(file, `listed by a repair at ${line.repaired_at}; proven from then on only`);
    } else if (manifest.superseded.has(file)) {
      tally.note(file, 'listed more than once; the last line counts');
    }
  }
}

/** What lies there and is no finished file. */
export function reportOthers({ parts, temporary, notFollowed }: ArchiveListing, tally: Tally): void {
  for (const file of notFollowed) {
    tally.differ({ code: 'file_not_followed', file, line: null, detail: 'not a plain file; not followed' });
  }
  for (const file of parts) {
    tally.note(file, 'unfinished: a receiver is running, or was not stopped in an orderly way');
  }
  const unfinished = new Set(parts.map((part) => part.slice(0, -PART_EXTENSION.length)));
  for (const file of temporary) {
    // Beside its part, it is the part being finished.
    if (unfinished.has(file.slice(0, -TEMPORARY_EXTENSION.length))) continue;
    tally.note(file, 'temporary: a receiver is running, or was killed while it wrote');
  }
}

/** Listed files that are not there, once all that are have been read: their bytes may be under another name. */
export function reportMissing(
  lines: ReadonlyMap<string, ManifestLine>,
  listing: ArchiveListing,
  found: ReadonlyMap<string, FileFacts>,
  tally: Tally,
): void {
  const present = new Set([...listing.files, ...listing.claims, ...listing.notFollowed]);
  const holders = new Map<string, string>();
  for (const [file, { sha256 }] of found) holders.set(sha256, file);
  for (const [file, { sha256 }] of lines) {
    if (sha256 === null || present.has(file)) continue;
    const holder = holders.get(sha256);
    const where = holder === undefined ? '' : `; its bytes are in ${holder}`;
    tally.differ({
      code: 'file_missing',
      file,
      line: null,
      detail: `listed in ${MANIFEST}, not there${where}`,
    });
  }
}
