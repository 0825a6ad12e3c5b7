import { EMPTY_ROOT, HASH_BYTES, nodeHash, writeLeafHash } from './hashing.ts';
import { rootOf, TILE_WIDTH } from './tiles.ts';

/** 256^6 entries are more than there will be. */
export const LEVELS = 6;

/** A tile that is not whole yet. */
interface OpenTile {
  readonly hashes: Buffer;
  count: number;
}

/** A tree that grows at its end: of each level of tiles the hashes that make no whole tile yet. */
export class Frontier {
  readonly #open: readonly OpenTile[];
  readonly #onTile: (level: number, root: Buffer) => void;

  /**
   * @param onTile told of each tile that is whole, from level 0 on, and its root
   * @param open what there is already, by level: hashes, one after the other
   */
  constructor(onTile: (level: number, root: Buffer) => void = () => undefined, open: readonly Buffer[] = []) {
    this.#onTile = onTile;
    this.#open = Array.from({ length: LEVELS }, (_, level) => {
      const hashes = Buffer.alloc(TILE_WIDTH * HASH_BYTES);
      return { hashes, count: (open[level]?.copy(hashes) ?? 0) / HASH_BYTES };
    });
  }

  /** @param entries among which it stands at `at` */
  push(entries: Buffer, at: number): void {
    const tile = this.#open[0] as OpenTile;
    writeLeafHash(entries, at, tile.hashes, tile.count * HASH_BYTES);
    this.#grown(0, tile);
  }

  root(): Buffer {
    const peaks = this.#open.flatMap(peaksOf);
    const root = peaks.reduce<Buffer | null>(
      (below, peak) => (below === null ? peak : nodeHash(peak, below)),
      null,
    );
    return root ?? EMPTY_ROOT;
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

/** Roots of the complete subtrees that these hashes make, from the lowest up: the rightmost one is the smallest. */
function peaksOf({ hashes, count }: OpenTile): Buffer[] {
  const peaks: Buffer[] = [];
  for (let size = 1, end = count; end > 0; size *= 2) {
    if ((count & size) === 0) continue;
    peaks.push(rootOf(Buffer.from(hashes.subarray((end - size) * HASH_BYTES, end * HASH_BYTES))));
    end -= size;
  }
  return peaks;
}
