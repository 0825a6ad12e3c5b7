import { createHash } from 'node:crypto';
import { isCompaction, type ManifestLine } from '../core/archive-manifest.ts';
import { messageOf } from '../core/errors.ts';
import { Compactions } from './compactions.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import type { Manifest } from './manifest.ts';
import type { ArchiveListing } from './place.ts';
import type { DifferenceCode, VerifyTally } from './report.ts';

/** Compares the lines of compactions with those of the files that they replaced. */
export function checkCompactions({ compactions, entries, superseded }: Manifest, tally: VerifyTally): void {
  for (const { file, replaces, records, bytes } of compactions.values()) {
    const differ = (detail: string): void => tally.differs(file, 'compaction_differs', detail);
    for (const piece of replaces) {
      const listed = entries.get(piece.file);
      if (listed === undefined) differ(`made of ${piece.file}, which the manifest never listed`);
      else if (listed.sha256 !== piece.sha256 && !superseded.has(piece.file))
        differ(`made of ${piece.file} with SHA-256 ${piece.sha256}, listed with ${listed.sha256 ?? 'none'}`);
    }
    const sum = (of: 'records' | 'bytes'): number => replaces.reduce((all, piece) => all + piece[of], 0);
    if (sum('records') !== records) differ(`made of ${sum('records')} records, listed with ${records}`);
    if (sum('bytes') !== bytes) differ(`made of ${sum('bytes')} bytes, listed with ${bytes}`);
  }
}

/**
 * Compares the slices of a compacted file with the hashes of the files it was made of, while it is read.
 * @returns null for a file whose newest line is not one of a compaction
 */
export function sliceChecks(line: ManifestLine | undefined) {
  if (line === undefined || !isCompaction(line)) return null;
  const { replaces } = line;
  const found: string[] = [];
  let hash = createHash('sha256');
  let left = replaces[0]?.bytes ?? 0;
  return {
    add: (chunk: Buffer): void => {
      let rest = chunk;
      while (rest.length > 0 && found.length < replaces.length) {
        const part = rest.subarray(0, left);
        hash.update(part);
        rest = rest.subarray(part.length);
        left -= part.length;
        if (left > 0) return;
        found.push(hash.digest('hex'));
        hash = createHash('sha256');
        left = replaces[found.length]?.bytes ?? 0;
      }
    },
    differences: (): [DifferenceCode, string][] =>
      replaces.flatMap(({ file, sha256 }, nth) =>
        found[nth] === sha256 ? [] : [['compaction_differs', `the bytes of ${file} in it are others`]],
      ),
  };
}

/** Reports files that do not count. Only a changed one is a difference. */
export async function reportAside(
  { place, aside }: ArchiveListing,
  manifest: Manifest | null,
  tally: VerifyTally,
): Promise<void> {
  const compactions = new Compactions(manifest?.compactions ?? new Map());
  for (const file of aside) {
    const [by] = compactions.madeOf(file);
    if (by === undefined) {
      tally.note(
        file,
        'left by a compaction that was ended; not read; `millrace archive compact` removes it',
      );
      continue;
    }
    const known = [manifest?.entries.get(file)?.sha256, ...compactions.hashesOf(file)];
    const { sha256 } = await hashChunks(place.chunks(file)).catch((error: unknown) => ({
      sha256: messageOf(error),
    }));
    if (known.includes(sha256))
      tally.note(file, `replaced by ${by.file}; not read; \`millrace archive compact\` removes it`);
    else {
      const detail = `was replaced by ${by.file}, and other bytes lie there now; not read`;
      tally.differs(file, 'file_returned', detail);
    }
  }
}
