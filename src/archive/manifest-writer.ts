import { join } from 'node:path';
import { MANIFEST, OPEN_FOLDER } from '../core/archive.ts';
import {
  formatManifestLine,
  parseManifestLine,
  partsOf,
  type NewManifestLine,
} from '../core/archive-manifest.ts';
import { messageOf } from '../core/errors.ts';
import type { ManifestHead, OpenProof, Proof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import { AppendFile } from '../lib/append-file.ts';
import { ensureFolder, readPlain } from '../lib/durable.ts';
import { lockInTurn } from '../lib/file-lock.ts';
import { cutLines } from '../lib/lines.ts';
import { Serial } from '../lib/serial.ts';
import { hashLine } from '../lib/chained-log.ts';

/**
 * The manifest of one archive, for writing: by the sink that makes the files, by an erasure, by a repair. It remembers
 * nothing between calls: the last line is read again for each append, under a lock, so that several writers of one
 * archive make one chain. Each line is signed, and its hash noted apart from the archive.
 */
export class ManifestWriter {
  readonly #root: string;
  readonly #log: SinkLog;
  readonly #openProof: OpenProof | undefined;
  readonly #serial = new Serial();

  /**
   * @param root the archive's folder, absolute and without symbolic links: heads are noted by it
   * @param proof absent: lines are not signed, and heads not noted
   */
  constructor(root: string, log: SinkLog, proof?: OpenProof) {
    this.#root = root;
    this.#log = log;
    this.#openProof = proof;
  }

  get path(): string {
    return join(this.#root, MANIFEST);
  }

  /**
   * Cuts off a last line that a crash left incomplete. Makes the manifest if there is none. Notes its head.
   * @param sink that is about to write here: noted before its first byte
   */
  repair(sink?: string): Promise<void> {
    return this.#exclusively(async (file, proof) => {
      if (sink !== undefined) await proof?.heads.noteWriter(this.#root, { sink });
      const { length: bytes } = file;
      const lost = await this.#lostHead(file, proof);
      if (bytes > 0) await this.#note(proof, { head: hashLine(await file.lineBefore(bytes)), bytes }, lost);
    });
  }

  /**
   * Adds a line: a file that was finished, an event that was kept, what an erasure left of a file. Durable once it
   * resolves. When it throws, the manifest is as it was.
   */
  append(entry: NewManifestLine): Promise<void> {
    return this.#exclusively(async (file, proof) => {
      const before = hashLine(await file.lineBefore(file.length));
      const lost = await this.#lostHead(file, proof);
      const text = formatManifestLine(entry, before, partsOf(proof));
      await file.append(Buffer.from(`${text}\n`));
      await this.#note(proof, { head: hashLine(text), bytes: file.length }, lost);
    });
  }

  /** Of these names, the ones the manifest has a line for. Reads all of it. */
  async listed(names: ReadonlySet<string>): Promise<Set<string>> {
    const found = new Set<string>();
    if (names.size === 0) return found;
    for await (const lines of cutLines(readPlain(this.path))) {
      for (const { bytes } of lines) {
        const entry = bytes === null ? null : parseManifestLine(bytes.toString());
        if (entry !== null && names.has(entry.file)) found.add(entry.file);
      }
    }
    return found;
  }

  /** The head that was noted last, when the manifest does not hold it any more. */
  async #lostHead(file: AppendFile, proof: Proof | undefined): Promise<ManifestHead | null> {
    let noted: ManifestHead | null = null;
    try {
      noted = proof?.heads.of(this.#root) ?? null;
    } catch (error) {
      this.#log.error(
        { file: this.path, error: messageOf(error) },
        'the noted head of the manifest cannot be read',
      );
    }
    if (noted === null) return null;
    const line = noted.bytes > file.length ? null : await file.lineBefore(noted.bytes);
    if (line !== null && hashLine(line) === noted.head) return null;
    const said =
      'the manifest does not hold its noted head: an older manifest was restored, or it was changed';
    this.#log.error({ file: this.path, head: noted.head }, said);
    return noted;
  }

  /**
   * Notes a head after its line is durable. A crash before this, or a full disk, leaves the head before, which the manifest
   * holds as well: no reason to say that the line could not be written.
   */
  async #note(proof: Proof | undefined, head: ManifestHead, lost: ManifestHead | null): Promise<void> {
    try {
      await proof?.heads.note(this.#root, head, lost);
    } catch (error) {
      this.#log.warn(
        { file: this.path, error: messageOf(error) },
        'the head of the manifest could not be noted',
      );
    }
  }

  #exclusively<T>(task: (file: AppendFile, proof: Proof | undefined) => Promise<T>): Promise<T> {
    return this.#serial.run(async () => {
      const proof = await this.#openProof?.();
      const folder = await ensureFolder(this.#root, OPEN_FOLDER);
      // Another writer is appending its line, which takes as long as one fsync.
      const lock = await lockInTurn(join(folder, 'manifest.lock'));
      try {
        const { file, cut } = await AppendFile.openLines(this.path);
        if (cut > 0)
          this.#log.warn({ file: MANIFEST, bytes: cut }, 'removed an incomplete last line from the manifest');
        try {
          return await task(file, proof);
        } finally {
          await file.close();
        }
      } finally {
        lock.release();
      }
    });
  }
}
