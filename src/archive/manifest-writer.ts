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
 * Writes the manifest of an archive in a folder. Each append reads the last line again, under a lock, so that several
 * writers make one chain. Each line is signed, and its hash noted outside the archive.
 */
export class ManifestWriter {
  readonly #root: string;
  readonly #log: SinkLog;
  readonly #openProof: OpenProof | undefined;
  readonly #serial = new Serial();

  /**
   * @param root the archive's folder, absolute and without symbolic links; heads are noted under it
   * @param proof without it lines are not signed, and heads not noted
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
   * Removes an incomplete last line, creates a missing manifest, and notes its head.
   * @param sink that will write here; noted before its first byte
   */
  repair(sink?: string): Promise<void> {
    return this.#exclusively(async (file, proof) => {
      const lost = await this.#lostHead(file, proof);
      if (sink !== undefined) await proof?.heads.noteWriter(this.#root, { sink });
      const { length: bytes } = file;
      if (bytes > 0) await this.#note(proof, { head: hashLine(await file.lineBefore(bytes)), bytes }, lost);
    });
  }

  /** Adds a line, durable once it resolves. When it throws, the manifest is as it was. */
  append(entry: NewManifestLine): Promise<void> {
    return this.#exclusively(async (file, proof) => {
      const before = hashLine(await file.lineBefore(file.length));
      const lost = await this.#lostHead(file, proof);
      const text = formatManifestLine(entry, before, partsOf(proof));
      await file.append(Buffer.from(`${text}\n`));
      await this.#note(proof, { head: hashLine(text), bytes: file.length }, lost);
    });
  }

  /** The names among these that have a line. Reads all of the manifest. */
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

  /** The noted head, when the manifest no longer holds it. */
  async #lostHead(file: AppendFile, proof: Proof | undefined): Promise<ManifestHead | null> {
    const noted = headNoted(proof, this.#root, this.#log);
    if (noted === null) return null;
    const line = noted.bytes > file.length ? null : await file.lineBefore(noted.bytes);
    if (line !== null && hashLine(line) === noted.head) return null;
    const said =
      'the manifest does not hold its noted head: an older manifest was restored, or it was changed';
    this.#log.error({ file: this.path, head: noted.head }, said);
    return noted;
  }

  /** Notes a head after its line is durable. Never rejects: the manifest holds the head noted before, too. */
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
      // Another writer holds it for one fsync.
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

/** The head that is noted of an archive; null also when it cannot be read, which is logged. */
export function headNoted(proof: Proof | undefined, root: string, log: SinkLog): ManifestHead | null {
  try {
    return proof?.heads.of(root) ?? null;
  } catch (error) {
    log.error({ archive: root, error: messageOf(error) }, 'the noted head of the manifest cannot be read');
    return null;
  }
}
