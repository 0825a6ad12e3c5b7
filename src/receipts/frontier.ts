import { EMPTY_ROOT, nodeHash } from './hashing.ts';
import { rootOf, TILE_WIDTH } from './tiles.ts';

/** 256^6 entries are more than there will be. */
export const LEVELS = 6;

/** A tree that grows at its end: of each level of tiles the hashes that make no whole tile yet. */
export class Frontier {
  readonly #open: Buffer[][];
  readonly #onTile: (level: number, root: Buffer) => void;

  /**
   * @param onTile told of each tile that is whole, from level 0 on, and its root
   * @param open what there is already, by level
   */
  constructor(
    onTile: (level: number, root: Buffer) => void = () => undefined,
    open: readonly Buffer[][] = [],
  ) {
    this.#onTile = onTile;
    this.#open = Array.from({ length: LEVELS }, (_, level) => open[level] ?? []);
  }

  push(leaf: Buffer): void {
    this.#push(0, leaf);
  }

  root(): Buffer {
    const peaks = this.#open.flatMap(peaksOf);
    const root = peaks.reduce<Buffer | null>(
      (below, peak) => (below === null ? peak : nodeHash(peak, below)),
      null,
    );
    return root ?? EMPTY_ROOT;
  }

  #push(level: number, hash: Buffer): void {
    const open = this.#open[level] as Buffer[];
    open.push(hash);
    if (open.length < TILE_WIDTH) return;
    const root = rootOf(open);
    open.length = 0;
    this.#onTile(level, root);
    this.#push(level + 1, root);
  }
}

/** Roots of the complete subtrees that these hashes make, from the lowest up: the rightmost one is the smallest. */
function peaksOf(hashes: readonly Buffer[]): Buffer[] {
  const peaks: Buffer[] = [];
  for (let size = 1, end = hashes.length; end > 0; size *= 2) {
    if ((hashes.length & size) === 0) continue;
    peaks.push(rootOf(hashes.slice(end - size, end)));
    end -= size;
  }
  return peaks;
}
