import { getOrMake } from '../../lib/get-or-make.ts';
import { HASH_BYTES, nodeHash, splitOf, writeNodeHash } from './hashing.ts';

/** Hashes of a full tile (C2SP tlog-tiles). A tile of level L has hashes of subtrees of height 8L. */
export const TILE_WIDTH = 256;

export interface TilePlace {
  readonly level: number;
  readonly index: number;
  /** Hashes in it, from 1 to 256. */
  readonly width: number;
}

/** `tile/0/x001/x234/067`, with `.p/17` behind it for a tile of 17 hashes. */
export function tilePath(level: number | 'entries', index: number, width: number): string {
  const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, '0');
  const groups = digits.match(/\d{3}/g) as string[];
  const name = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${name}${width < TILE_WIDTH ? `.p/${width}` : ''}`;
}

/** Hashes of a tile in a tree of `size` leaves; 0 when the tree has no such tile. */
export function widthOf(level: number, index: number, size: number): number {
  const hashes = Math.floor(size / TILE_WIDTH ** level);
  return Math.max(0, Math.min(TILE_WIDTH, hashes - index * TILE_WIDTH));
}

/** Reads a tile of at least `width` hashes. */
type ReadTile = (place: TilePlace) => Promise<Buffer>;

/** Computes hashes of one tree of `size` leaves from its tiles, each read once. */
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

  /** Hash of the subtree of the leaves from `from` up to `to` (excluded). */
  async range(from: number, to: number): Promise<Buffer> {
    const count = to - from;
    if (count >= 1 && Number.isInteger(Math.log2(count)) && from % count === 0)
      return this.#complete(from, count);
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
    return getOrMake(this.#tiles, `${place.level}/${place.index}`, () => this.#read(place));
  }
}

export function hashesIn(tile: Buffer): Buffer[] {
  const hashes: Buffer[] = [];
  for (let at = 0; at < tile.length; at += HASH_BYTES) hashes.push(tile.subarray(at, at + HASH_BYTES));
  return hashes;
}

/** Root of a complete subtree. @param hashes its leaves, a power of two of them; they are overwritten */
export function rootOf(hashes: Buffer): Buffer {
  for (let pairs = hashes.length / HASH_BYTES / 2; pairs >= 1; pairs /= 2)
    for (let pair = 0; pair < pairs; pair += 1)
      writeNodeHash(hashes, 2 * pair * HASH_BYTES, hashes, pair * HASH_BYTES);
  return Buffer.from(hashes.subarray(0, HASH_BYTES));
}
