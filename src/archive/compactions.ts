import type { CompactionLine } from '../core/archive-manifest.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import type { Manifest } from './manifest.ts';
import type { Slice } from './place.ts';

/** A file that was joined into another. */
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

  /** Lines of the files that this one was joined into: one, unless the first was lost. */
  madeOf(file: string): readonly CompactionLine[] {
    return this.#by.get(file) ?? [];
  }

  /** SHA-256 of this file when it was joined. */
  hashesOf(file: string): string[] {
    const pieces = this.madeOf(file).flatMap(({ replaces }) => replaces);
    return pieces.filter((piece) => piece.file === file).map(({ sha256 }) => sha256);
  }

  /**
   * Whether another file counts instead of one with this name, also when it was restored from a backup.
   * @param stands whether a file is there, or was removed by an erasure
   */
  isReplaced(file: string, stands: (file: string) => boolean): boolean {
    return this.madeOf(file).some((line) => stands(line.file) || this.isReplaced(line.file, stands));
  }

  /** The files that were joined into this one; null also when an erasure has changed it since. */
  piecesOf(file: string, entries: Manifest['entries']): readonly Piece[] | null {
    const line = this.#lines.get(file);
    return line !== undefined && entries.get(file)?.sha256 === line.sha256 ? line.replaces : null;
  }

  /**
   * Where the bytes of a replaced file are; null when they are gone.
   * @param isThere whether a file is there and has this size
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
