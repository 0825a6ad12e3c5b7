import { statfsSync } from 'node:fs';

const MIB = 2 ** 20;

/**
 * The space on the journal's disk, and the part of it that is left alone: what is already acknowledged needs some to be
 * settled, cleared away and checkpointed. A disk filled to the last byte would never recover by itself.
 */
export class DiskRoom {
  readonly #folder: string;
  /** Bytes that stay free. */
  readonly reserve: number;

  constructor(folder: string) {
    this.#folder = folder;
    const { blocks, bsize } = statfsSync(folder);
    this.reserve = Math.min(32 * MIB, Math.floor((blocks * bsize) / 8));
  }

  /** Bytes that are free for this process now; costs a few microseconds. */
  free(): number {
    const { bavail, bsize } = statfsSync(this.#folder);
    return bavail * bsize;
  }
}
