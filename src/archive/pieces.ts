import { Compactions, type Piece } from './compactions.ts';
import { hashFile } from './facts.ts';
import type { Manifest } from './manifest.ts';
import type { ArchiveListing } from './place.ts';

/** The files that a file was made of, each unchanged and readable by its old name; null for any other file. */
export type PiecesOf = (file: string) => readonly Piece[] | null;

/** For readers that may have read some files before a compaction joined them. */
export async function readPieces(
  { place, aside }: ArchiveListing,
  { entries, compactions: lines }: Manifest,
): Promise<PiecesOf> {
  const compactions = new Compactions(lines);
  // A replaced file that is still there is read itself: it can be restored from a backup, with other bytes.
  const changed = new Set<string>();
  for (const file of aside) {
    const known = compactions.hashesOf(file);
    if (known.length === 0) continue;
    const { sha256 } = await hashFile(place, file).catch(() => ({ sha256: '' }));
    if (known.some((one) => one !== sha256)) changed.add(file);
  }
  return (file) => {
    const pieces = compactions.piecesOf(file, entries);
    return pieces?.some((piece) => changed.has(piece.file)) === true ? null : pieces;
  };
}
