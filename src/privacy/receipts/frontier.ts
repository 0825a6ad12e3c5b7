import { EMPTY_ROOT, HASH_BYTES, nodeHash, writeLeafHash } from './hashing.ts';
import { rootOf, TILE_WIDTH } from './tiles.ts';

/** Levels of tiles: enough for 256^6 entries. */
export const LEVELS = 6;

/** A tile with fewer than `TILE_WIDTH` hashes. */
interface OpenTile {
  readonly hashes: Buffer;
  count: number;
}

/** The right edge of a growing tree: of each level, the hashes that do not fill a tile yet. */
export class Frontier {
  readonly #open: readonly OpenTile[];
  readonly #onTile: (level: number, root: Buffer) => void;

  /**
   * @param onTile called with the level, from 0, and the root of each tile that fills
   * @param open hashes to begin with, by level
   */
  constructor(onTile: (level: number, root: Buffer) => void = () => undefined, open: readonly Buffer[] = []) {
    this.#onTile = onTile;
    this.#open = Array.from({ length: LEVELS }, (_, level) => {
      const hashes = Buffer.alloc(TILE_WIDTH * HASH_BYTES);
      return { hashes, count: (open[level]?.copy(hashes) ?? 0) / HASH_BYTES };
    });
  }

  /** Adds the entry that begins at `at`. */
  push(entries: Buffer, at: number): void {
    const tile = this.#open[0] as OpenTile;
    writeLeafHash(entries, at, tile.hashes, tile.count * HASH_BYTES);
    this.#grown(0, tile);
  }

  root(): Buffer {
    const [smallest = EMPTY_ROOT, ...larger] = this.#open.flatMap(peaksOf);
    return larger.reduce((below, peak) => nodeHash(peak, below), smallest);
  }

  #grown(level: number, tile: OpenTile): void {
    tile.count += 1;
    if (tile.count < TILE_WIDTH) return;
    const root = rootOf(tile.hashes);
    tile.count = 0;
    this.#onTile(level, root);
    const above = this.#open[level + 1] as OpenTile;
    above.hashes.set(root, above.count * HASH_BYTES);
    this.#grown(level + 1, above);
  }
}

/** Roots of the complete subtrees in a tile, from the rightmost, which is the smallest. */
function peaksOf({ hashes, count }: OpenTile): Buffer[] {
  const peaks: Buffer[] = [];
  for (let size = 1, end = count; end > 0; size *= 2) {
    if ((count & size) === 0) continue;
    peaks.push(rootOf(Buffer.from(hashes.subarray((end - size) * HASH_BYTES, end * HASH_BYTES))));
    end -= size;
  }
  return peaks;
}
