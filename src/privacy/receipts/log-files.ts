import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeFolder, syncFolderNow } from '../../lib/durable.ts';
import { writeDurably } from '../../lib/new-file.ts';
import { Frontier, LEVELS } from './frontier.ts';
import { EMPTY_ROOT, HASH_BYTES } from './hashing.ts';
import type { LogBefore } from './job.ts';
import { checkpointText, openCheckpoint, signNote, type NoteSigner, type TreeHead } from './note.ts';
import { CHECKPOINT, ENTRIES, LogReader } from './log-reader.ts';
import { TILE_WIDTH, widthOf } from './tiles.ts';

/** Entries that are hashed at a time. */
const CHUNK = 65_536;

/** Makes the files of hashes from the entries. @throws Error when these are not what the checkpoint was signed for */
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

/** A file of entries, or of hashes of one level, that grows at its end. */
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
      throw new RangeError(`${path} is shorter than the checkpoint says`);
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

  /** @throws Error when the file was removed or replaced, or another program has written to it */
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

/** Writes a log; one writer at a time. */
export class LogWriter {
  readonly #folder: string;
  readonly #signer: NoteSigner;
  readonly #entries: Column;
  readonly #columns: Column[];
  readonly #tree: Frontier;
  /** True when the hashes were damaged and have been made again from the entries. */
  hasMadeHashes = false;
  size: number;

  /**
   * @param before what the log was before, when it is opened again: another log in its place is refused
   * @throws Error when the log is not what its checkpoint says, or another key signed it
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
    const repaired = LogWriter.#opened(folder, signer, head);
    if (repaired === null) throw new Error(`${folder} is not the log that its checkpoint is of`);
    repaired.hasMadeHashes = true;
    return repaired;
  }

  /** Null when the files do not make the root of the checkpoint. */
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
      if (!(error instanceof RangeError)) throw error;
    }
    log?.close();
    return null;
  }

  private constructor(folder: string, signer: NoteSigner, size: number, open: readonly Buffer[]) {
    this.#folder = folder;
    this.#signer = signer;
    this.size = size;
    this.#tree = new Frontier((level, tile) => this.#columns[level]?.push(tile), open);
    this.#entries = new Column(join(folder, ENTRIES), size);
    this.#columns = Array.from(
      { length: LEVELS - 1 },
      (_, n) => new Column(join(folder, `hashes-${n + 1}`), Math.floor(size / TILE_WIDTH ** (n + 1))),
    );
    syncFolderNow(folder);
  }

  append(entries: Buffer): void {
    this.#entries.push(entries);
    for (let at = 0; at < entries.length; at += HASH_BYTES) this.#tree.push(entries, at);
    this.size += entries.length / HASH_BYTES;
    this.#entries.write();
  }

  /** Makes all entries durable and signs the new head. @returns the signed note */
  async checkpoint(): Promise<string> {
    for (const column of [this.#entries, ...this.#columns]) column.sync();
    const note = signNote(checkpointText(this.head()), this.#signer);
    await writeDurably(this.#folder, CHECKPOINT, note);
    return note;
  }

  head(): TreeHead {
    return { origin: this.#signer.name, size: this.size, root: this.#tree.root() };
  }

  close(): void {
    for (const column of [this.#entries, ...this.#columns]) column.close();
  }
}
