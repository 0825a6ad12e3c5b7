import type { CompactionLine } from '../core/archive-manifest.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import type { Manifest } from './manifest.ts';
import type { Slice } from './place.ts';

/** A file whose bytes lie in one that a compaction made. */
export type Piece = CompactionLine['replaces'][number];

/** Says which files compactions have replaced, and where their bytes are. */
export class Compactions {
  readonly #lines: ReadonlyMap<string, CompactionLine>;
  readonly #by = new Map<string, CompactionLine[]>();

  constructor(lines: ReadonlyMap<string, CompactionLine>) {
    this.#lines = lines;
    for (const line of lines.values()) {
      for (const { file } of line.replaces) getOrMake(this.#by, file, () => []).push(line);
    }
  }

  /** The files that compactions made of this one: one, unless the first was lost. */
  madeOf(file: string): readonly CompactionLine[] {
    return this.#by.get(file) ?? [];
  }

  /** What the compactions took this one to hold: SHA-256 each. */
  hashesOf(file: string): string[] {
    const pieces = this.madeOf(file).flatMap(({ replaces }) => replaces);
    return pieces.filter((piece) => piece.file === file).map(({ sha256 }) => sha256);
  }

  /**
   * Whether another file counts in its place. By name: whatever lies there now, as from a backup.
   * @param stands whether a file is there, or was removed by an erasure
   */
  isReplaced(file: string, stands: (file: string) => boolean): boolean {
    return this.madeOf(file).some((line) => stands(line.file) || this.isReplaced(line.file, stands));
  }

  /**
   * The files a compaction made this one of, as long as it holds their bytes: an erasure in it ends that.
   * @param entries newest lines, of all chains
   */
  piecesOf(file: string, entries: Manifest['entries']): readonly Piece[] | null {
    const line = this.#lines.get(file);
    return line !== undefined && entries.get(file)?.sha256 === line.sha256 ? line.replaces : null;
  }

  /**
   * Where the bytes of a replaced file are; null when nobody has them any more.
   * @param isThere whether a file lies there, and has this size
   */
  slice(
    file: string,
    entries: Manifest['entries'],
    isThere: (file: string, bytes: number) => boolean,
  ): Slice | null {
    for (const line of this.madeOf(file)) {
      if (this.piecesOf(line.file, entries) === null) continue;
      const at = line.replaces.findIndex((piece) => piece.file === file);
      const bytes = line.replaces[at]?.bytes ?? 0;
      const offset = line.replaces.slice(0, at).reduce((sum, piece) => sum + piece.bytes, 0);
      if (isThere(line.file, line.bytes)) return { file: line.file, offset, bytes };
      const around = this.slice(line.file, entries, isThere);
      if (around !== null) return { file: around.file, offset: around.offset + offset, bytes };
    }
    return null;
  }
}
