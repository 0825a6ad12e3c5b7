import { HASH_BYTES, nodeHash, splitOf, writeNodeHash } from './hashing.ts';

/** C2SP tlog-tiles: hashes of a tree in files of 256, by height: a tile of level L has the hashes of height 8L. */
export const TILE_WIDTH = 256;

export interface TilePlace {
  readonly level: number;
  readonly index: number;
  /** Hashes in it, from 1 to 256. */
  readonly width: number;
}

/** `tile/0/x001/x234/067`, and `.p/17` behind it where it is not full. @param level a number, or `entries` */
export function tilePath(level: number | 'entries', index: number, width: number): string {
  const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, '0');
  const groups = digits.match(/\d{3}/g) as string[];
  const name = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${name}${width < TILE_WIDTH ? `.p/${width}` : ''}`;
}

/** Hashes that a tile has in a tree of `size` leaves; 0 when there is none. */
export function widthOf(level: number, index: number, size: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** level);
  return Math.max(0, Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH));
}

/** Reads a tile, whole: `width` hashes, or more when it has grown since. */
export type ReadTile = (place: TilePlace) => Promise<Buffer>;

/** Tiles of one tree of `size` leaves, each read once. */
export class TreeReader {
  readonly size: number;
  readonly #read: ReadTile;
  readonly #tiles = new Map<string, Promise<Buffer>>();

  constructor(size: number, read: ReadTile) {
    this.size = size;
    this.#read = read;
  }

  root(): Promise<Buffer> {
    return this.range(0, this.size);
  }

  /** Hash of a subtree: `from` is a multiple of the power of two that `to - from` is, or the first after a split. */
  async range(from: number, to: number): Promise<Buffer> {
    const count = to - from;
    if (isPowerOfTwo(count) && from % count === 0) return this.#complete(from, count);
    const middle = from + splitOf(count);
    const [left, right] = await Promise.all([this.range(from, middle), this.range(middle, to)]);
    return nodeHash(left, right);
  }

  async #complete(from: number, count: number): Promise<Buffer> {
    const height = Math.log2(count);
    const level = Math.floor(height / 8);
    const first = from / TILE_WIDTH ** level;
    const index = Math.floor(first / TILE_WIDTH);
    const tile = await this.#tile({ level, index, width: widthOf(level, index, this.size) });
    const at = first - index * TILE_WIDTH;
    return rootOf(Buffer.from(tile.subarray(at * HASH_BYTES, (at + 2 ** (height % 8)) * HASH_BYTES)));
  }

  #tile(place: TilePlace): Promise<Buffer> {
    const key = `${place.level}/${place.index}`;
    let tile = this.#tiles.get(key);
    if (tile === undefined) this.#tiles.set(key, (tile = this.#read(place)));
    return tile;
  }
}

export function hashesIn(tile: Buffer): Buffer[] {
  const hashes: Buffer[] = [];
  for (let at = 0; at < tile.length; at += HASH_BYTES) hashes.push(tile.subarray(at, at + HASH_BYTES));
  return hashes;
}

/**
 * Root of a complete subtree.
 * @param hashes one after the other, as many as a power of two; the hashes above them are written over them
 */
export function rootOf(hashes: Buffer): Buffer {
  for (let pairs = hashes.length / HASH_BYTES / 2; pairs >= 1; pairs /= 2)
    for (let pair = 0; pair < pairs; pair += 1)
      writeNodeHash(hashes, 2 * pair * HASH_BYTES, hashes, pair * HASH_BYTES);
  return Buffer.from(hashes.subarray(0, HASH_BYTES));
}

function isPowerOfTwo(count: number): boolean {
  return count >= 1 && Number.isInteger(Math.log2(count));
}
