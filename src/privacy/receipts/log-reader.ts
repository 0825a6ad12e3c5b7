import { closeSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { LogHead } from '../../core/receipt.ts';
import { openIfThere, readIfThere } from '../../lib/durable.ts';
import { EMPTY_ROOT, HASH_BYTES, writeLeafHash } from './hashing.ts';
import { openCheckpoint, unverifiedHead, type NoteVerifier } from './note.ts';
import { formatProof, inclusionProof } from './proof-text.ts';
import { TILE_WIDTH, TreeReader, type TilePlace } from './tiles.ts';

/**
 * Files of a log: `entries`, 32 bytes each; `hashes-1`, the roots of each 256 of their hashes; `hashes-2`, the roots of each
 * 256 of these, and so on; and the signed `checkpoint`, written once all it covers is on disk. What lies beyond the checkpoint
 * was never shown to anyone and is cut off. A tile of C2SP tlog-tiles is a part of one of these files.
 */
export const CHECKPOINT = 'checkpoint';
export const ENTRIES = 'entries';
/** Holds the log's id, so that another log in its place is noticed. */
export const IDENTITY = 'log.json';

/** Reads a log in a folder, also while its receiver writes it. */
export class LogReader {
  /** The folder. */
  readonly name: string;

  constructor(folder: string) {
    this.name = folder;
  }

  /** Whether there is a log; it may have signed nothing yet. */
  exists(): boolean {
    return this.id() !== null || this.checkpoint() !== null;
  }

  /** A folder does not say which key signs it. */
  key(): null {
    return null;
  }

  /** The signed note; null before the first. */
  checkpoint(): string | null {
    return readIfThere(join(this.name, CHECKPOINT));
  }

  /** Id of the log; null before it has begun. */
  id(): string | null {
    const text = readIfThere(join(this.name, IDENTITY));
    return text === null ? null : (JSON.parse(text) as { readonly id: string }).id;
  }

  /** Entries from `from` on; fewer than `count` where the log ends. */
  entries(from: number, count: number): Buffer {
    return this.#read(ENTRIES, from, count);
  }

  /** @throws RangeError when the log has not all of the tile */
  tile({ level, index, width }: TilePlace): Buffer {
    const from = index * TILE_WIDTH;
    const found = level === 0 ? this.#leaves(from, width) : this.#read(`hashes-${level}`, from, width);
    if (found.length < width * HASH_BYTES)
      throw new RangeError(`tile ${level}/${index} of ${this.name} is not whole`);
    return found;
  }

  /** Proof of an entry (c2sp.org/tlog-proof@v1) under the current checkpoint; null when the log does not have it yet. */
  async proof(index: number): Promise<string | null> {
    const checkpoint = this.checkpoint() ?? '';
    // The checkpoint is verified together with the proof.
    const size = unverifiedHead(checkpoint)?.size ?? 0;
    if (index >= size) return null;
    const hashes = await inclusionProof(index, this.tree(size));
    return formatProof({ index, hashes, checkpoint });
  }

  tree(size: number): TreeReader {
    return new TreeReader(size, async (place) => this.tile(place));
  }

  rootAt(size: number): Promise<Buffer> {
    return this.tree(size).root();
  }

  /**
   * How the log ended when it was last signed, and its id; null before it has begun.
   * @throws Error when its checkpoint is not signed by this key, or its files are not what was signed
   */
  async head(verifier: NoteVerifier): Promise<LogHead & { readonly id: string | null }> {
    const id = this.id();
    const note = this.checkpoint();
    const origin = verifier.name;
    if (note === null) return { id, origin, size: 0, root: EMPTY_ROOT.toString('base64') };
    const head = openCheckpoint(note, verifier);
    if (head === null) throw new Error(`${this.name}: its checkpoint is not signed by the key of ${origin}`);
    const { size } = head;
    const root =
      size === 0
        ? EMPTY_ROOT
        : await this.rootAt(size).catch((error: unknown) => {
            throw new Error(`${this.name} is not whole: ${messageOf(error)}`, { cause: error });
          });
    if (!root.equals(head.root))
      throw new Error(`${this.name} is not the log that its checkpoint was signed for`);
    return { id, origin, size, root: root.toString('base64') };
  }

  #leaves(from: number, count: number): Buffer {
    const leaves = this.entries(from, count);
    for (let at = 0; at < leaves.length; at += HASH_BYTES) writeLeafHash(leaves, at, leaves, at);
    return leaves;
  }

  /** Whole hashes of a file, as many of `count` as there are. */
  #read(name: string, from: number, count: number): Buffer {
    const fd = openIfThere(join(this.name, name));
    if (fd === null) return Buffer.alloc(0);
    try {
      const bytes = Buffer.alloc(count * HASH_BYTES);
      let at = 0;
      for (let read = -1; read !== 0 && at < bytes.length; at += read)
        read = readSync(fd, bytes, at, bytes.length - at, from * HASH_BYTES + at);
      return bytes.subarray(0, at - (at % HASH_BYTES));
    } finally {
      closeSync(fd);
    }
  }
}
