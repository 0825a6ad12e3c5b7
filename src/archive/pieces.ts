import { Compactions, type Piece } from './compactions.ts';
import { hashFile } from './facts.ts';
import type { Manifest } from './manifest.ts';
import type { ArchiveListing } from './place.ts';

/** The files that one is made of, each readable by its old name, byte by byte as it was; null when it is made of none. */
export type PiecesOf = (file: string) => readonly Piece[] | null;

/** For readers that have read some of these files before a compaction joined them with others. */
export async function readPieces(
  { place, aside }: ArchiveListing,
  { entries, compactions: lines }: Manifest,
): Promise<PiecesOf> {
  const compactions = new Compactions(lines);
  // What still lies there is read as it is: somebody may have put it back from a backup, with what was erased since.
  const others = new Set<string>();
  for (const file of aside) {
    const known = compactions.hashesOf(file);
    if (known.length === 0) continue;
    const { sha256 } = await hashFile(place, file).catch(() => ({ sha256: '' }));
    if (known.some((one) => one !== sha256)) others.add(file);
  }
  return (file) => {
    const pieces = compactions.piecesOf(file, entries);
    return pieces?.some((piece) => others.has(piece.file)) === true ? null : pieces;
  };
}
