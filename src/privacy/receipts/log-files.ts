import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { isMissing, makeFolder, readIfThere, syncFolderNow } from '../../lib/durable.ts';
import { writeDurably } from '../../lib/new-file.ts';
import { Frontier, LEVELS } from './frontier.ts';
import { EMPTY_ROOT, HASH_BYTES, writeLeafHash } from './hashing.ts';
import type { LogBefore } from './job.ts';
import { checkpointText, openCheckpoint, signNote, type NoteSigner, type TreeHead } from './note.ts';
import { formatProof, inclusionProof } from './proof-text.ts';
import { TILE_WIDTH, TreeReader, widthOf, type TilePlace } from './tiles.ts';

/**
 * A log on disk: `entries`, 32 bytes each; `hashes-1`, the roots of each 256 of their hashes; `hashes-2`, those of each 256 of these,
 * and so on; and `checkpoint`, which is signed, and written when all it speaks of is on disk. What lies beyond it was never
 * told to anybody, and is cut off.
 *
 * A tile of C2SP tlog-tiles is a part of one of these files.
 */
export const CHECKPOINT = 'checkpoint';
const ENTRIES = 'entries';
/** Names the log, so that another one in its place is noticed. */
export const IDENTITY = 'log.json';

/** Its files for who only reads them. */
export class LogReader {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The signed note; null when there is none yet. */
  checkpoint(): string | null {
    return readIfThere(join(this.#folder, CHECKPOINT));
  }

  /** What names this log; null when it has not begun. */
  id(): string | null {
    const text = readIfThere(join(this.#folder, IDENTITY));
    return text === null ? null : (JSON.parse(text) as { readonly id: string }).id;
  }

  /** Entries from one on, as many of `count` as there are. */
  entries(from: number, count: number): Buffer {
    return this.#read(ENTRIES, from, count);
  }

  /** @throws RangeError when the log is shorter than a checkpoint has said */
  tile({ level, index, width }: TilePlace): Buffer {
    const from = index * TILE_WIDTH;
    const found = level === 0 ? this.#leaves(from, width) : this.#read(`hashes-${level}`, from, width);
    if (found.length < width * HASH_BYTES)
      throw new RangeError(`tile ${level}/${index} of ${this.#folder} is not whole`);
    return found;
  }

  /** Proves an entry: c2sp.org/tlog-proof@v1. Null when the log does not have it yet. */
  async proof(index: number): Promise<string | null> {
    const checkpoint = this.checkpoint();
    const size = sizeIn(checkpoint ?? '');
    if (checkpoint === null || index >= size) return null;
    const tree = this.tree(size);
    const hashes = await inclusionProof(index, size, (from, to) => tree.range(from, to));
    return formatProof({ extra: Buffer.alloc(0), index, hashes, checkpoint });
  }

  tree(size: number): TreeReader {
    return new TreeReader(size, (place) => Promise.resolve(this.tile(place)));
  }

  #leaves(from: number, count: number): Buffer {
    const leaves = this.entries(from, count);
    for (let at = 0; at < leaves.length; at += HASH_BYTES) writeLeafHash(leaves, at, leaves, at);
    return leaves;
  }

  #read(name: string, from: number, count: number): Buffer {
    const fd = openSync(join(this.#folder, name), 'r');
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

/** What a checkpoint says, whoever signed it: a proof by it is verified as a whole. */
function sizeIn(checkpoint: string): number {
  const [, size] = /^[^\n]+\n(\d{1,15})\n/.exec(checkpoint) ?? [];
  return Number(size ?? 0);
}

class ShortColumn extends Error {}

/** Entries that are hashed at a time. */
const CHUNK = 65_536;

/**
 * Makes the files of hashes from the entries alone, which the checkpoint is of.
 * @throws Error when the entries are not those that it was signed for
 */
function makeHashes(folder: string, { size, root }: Pick<TreeHead, 'size' | 'root'>): void {
  const reader = new LogReader(folder);
  const columns = Array.from({ length: LEVELS - 1 }, (): Buffer[] => []);
  const tree = new Frontier((level, tile) => columns[level]?.push(tile));
  for (let at = 0; at < size; at += CHUNK) {
    const count = Math.min(CHUNK, size - at);
    const entries = reader.entries(at, count);
    if (entries.length < count * HASH_BYTES)
      throw new Error(`${join(folder, ENTRIES)} is shorter than the checkpoint says`);
    for (let from = 0; from < entries.length; from += HASH_BYTES) tree.push(entries, from);
  }
  if (!tree.root().equals(root)) throw new Error(`${folder} is not the log that its checkpoint is of`);
  for (const [n, hashes] of columns.entries()) {
    const path = join(folder, `hashes-${n + 1}`);
    writeFileSync(`${path}.new`, Buffer.concat(hashes), { mode: 0o640, flush: true });
    renameSync(`${path}.new`, path);
  }
  syncFolderNow(folder);
}

/** Hashes of one height, at the end of their file. */
class Column {
  readonly #path: string;
  readonly #fd: number;
  #bytes: number;
  #isDirty = false;
  #waiting: Buffer[] = [];

  constructor(path: string, count: number) {
    this.#path = path;
    this.#fd = openSync(path, 'a+', 0o640);
    this.#bytes = count * HASH_BYTES;
    if (fstatSync(this.#fd).size < this.#bytes)
      throw new ShortColumn(`${path} is shorter than the checkpoint says`);
    ftruncateSync(this.#fd, this.#bytes);
  }

  push(hashes: Buffer): void {
    this.#waiting.push(hashes);
  }

  write(): void {
    if (this.#waiting.length === 0) return;
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#isDirty = true;
    for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at);
    this.#bytes += bytes.length;
  }

  /** @throws Error when it is not under its name any more, or somebody else has written to it */
  sync(): void {
    this.write();
    const here = fstatSync(this.#fd);
    const there = statSync(this.#path);
    if (there.ino !== here.ino || there.dev !== here.dev || there.size !== this.#bytes)
      throw new Error(`${this.#path} was removed, replaced or changed`);
    if (this.#isDirty) fdatasyncSync(this.#fd);
    this.#isDirty = false;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** The log for its one writer. */
export class LogWriter {
  readonly #folder: string;
  readonly #signer: NoteSigner;
  readonly #entries: Column;
  readonly #columns: Column[];
  readonly #tree: Frontier;
  /** Whether its hashes were damaged, and were made again from its entries. */
  hasMadeHashes = false;
  #size: number;

  /**
   * @param before what it was: another one begun in its place would contradict what was signed, or miss its name
   * @throws Error when the log is not what its checkpoint says, or its key is another one
   */
  static async open(folder: string, signer: NoteSigner, before?: LogBefore): Promise<LogWriter> {
    const reader = new LogReader(folder);
    const least = before?.signed ?? 0;
    if (before !== undefined && reader.id() !== before.id)
      throw new Error('was removed, or another log lies in its place. Restore it');
    const note = reader.checkpoint();
    if (note === null && least === 0) {
      makeFolder(folder, 0o700);
      return new LogWriter(folder, signer, 0, []);
    }
    const head = note === null ? { size: 0, root: EMPTY_ROOT } : openCheckpoint(note, signer);
    if (head === null)
      throw new Error(`${join(folder, CHECKPOINT)} is not signed by the key of ${signer.name}`);
    if (head.size < least)
      throw new Error(`has ${head.size} entries, and had ${least}: it was removed or replaced. Restore it`);
    const log = LogWriter.#opened(folder, signer, head);
    if (log !== null) return log;
    makeHashes(folder, head);
    const again = LogWriter.#opened(folder, signer, head);
    if (again === null) throw new Error(`${folder} is not the log that its checkpoint is of`);
    again.hasMadeHashes = true;
    return again;
  }

  /** Null where the hashes beside the entries are not those of the checkpoint. */
  static #opened(
    folder: string,
    signer: NoteSigner,
    head: Pick<TreeHead, 'size' | 'root'>,
  ): LogWriter | null {
    const reader = new LogReader(folder);
    let log: LogWriter | null = null;
    try {
      const open = Array.from({ length: LEVELS }, (_, level) => {
        const index = Math.floor(head.size / TILE_WIDTH ** (level + 1));
        const width = widthOf(level, index, head.size);
        return width === 0 ? Buffer.alloc(0) : reader.tile({ level, index, width });
      });
      log = new LogWriter(folder, signer, head.size, open);
      if (log.head().root.equals(head.root)) return log;
    } catch (error) {
      if (!(error instanceof ShortColumn || error instanceof RangeError || isMissing(error))) throw error;
    }
    log?.close();
    return null;
  }

  private constructor(folder: string, signer: NoteSigner, size: number, open: readonly Buffer[]) {
    this.#folder = folder;
    this.#signer = signer;
    this.#size = size;
    this.#tree = new Frontier((level, tile) => this.#columns[level]?.push(tile), open);
    this.#entries = new Column(join(folder, ENTRIES), size);
    this.#columns = Array.from(
      { length: LEVELS - 1 },
      (_, n) => new Column(join(folder, `hashes-${n + 1}`), Math.floor(size / TILE_WIDTH ** (n + 1))),
    );
    syncFolderNow(folder);
  }

  get size(): number {
    return this.#size;
  }

  /** @param entries one after the other */
  append(entries: Buffer): void {
    this.#entries.push(entries);
    for (let at = 0; at < entries.length; at += HASH_BYTES) this.#tree.push(entries, at);
    this.#size += entries.length / HASH_BYTES;
    this.#entries.write();
  }

  /** Makes all of it durable, and signs it. */
  async checkpoint(): Promise<string> {
    for (const column of [this.#entries, ...this.#columns]) column.sync();
    const note = signNote(checkpointText(this.head()), this.#signer);
    await writeDurably(this.#folder, CHECKPOINT, note);
    return note;
  }

  head(): TreeHead {
    return { origin: this.#signer.name, size: this.#size, root: this.#tree.root() };
  }

  close(): void {
    for (const column of [this.#entries, ...this.#columns]) column.close();
  }
}
