import { dirname } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import type { DroppedEntries, DroppedNote, OpenProof } from '../../core/proof.ts';
import { ENTRY_BYTES } from '../../core/receipt.ts';
import { checkSigned, signJson, type Signer } from '../../core/signature.ts';
import { makeFolder } from '../../lib/durable.ts';
import { lockInTurn } from '../../lib/file-lock.ts';
import { appendLines, readJsonLines } from '../../lib/json-lines.ts';

/** Milliseconds to wait for others that write a line. */
const PATIENCE = 10_000;

interface Line extends DroppedNote {
  /** ISO 8601. */
  readonly at: string;
}

/**
 * What a person dropped, as a file of JSON lines. They are signed: who removes an event by other means cannot say that a person dropped it.
 */
export class DroppedFile implements DroppedEntries {
  readonly #path: string;
  readonly #signer: Signer | null;
  readonly #trusted: ReadonlySet<string>;

  /**
   * @param signer null for one that is only read
   * @param trusted public keys whose lines count
   */
  constructor(path: string, signer: Signer | null, trusted: ReadonlySet<string>) {
    this.#path = path;
    this.#signer = signer;
    this.#trusted = trusted;
  }

  async append(notes: readonly DroppedNote[]): Promise<void> {
    const signer = this.#signer;
    if (signer === null)
      throw new MillraceError('proof_unusable', `${this.#path}: there is no key to sign with`);
    const at = new Date().toISOString();
    const lines = notes.map((one): Line => ({ at, ...one }));
    makeFolder(dirname(this.#path), 0o700);
    const lock = await lockInTurn(`${this.#path}.lock`, PATIENCE);
    try {
      await appendLines(
        this.#path,
        lines.map((line) => signJson('dropped', JSON.stringify(line), signer)),
      );
    } finally {
      lock.release();
    }
  }

  /** A line that was changed, or signed by somebody else, says nothing. */
  notes(): readonly DroppedNote[] {
    return readJsonLines<Line>(this.#path).flatMap((line) => {
      const { state, by } = checkSigned('dropped', JSON.stringify(line));
      if (state !== 'valid' || !this.#trusted.has(by)) return [];
      const entries = line.entries.filter((entry) => Buffer.from(entry, 'base64').length === ENTRY_BYTES);
      const { from, sink, archive, state: then } = line;
      return [{ from, sink, ...(archive === undefined ? {} : { archive }), state: then, entries }];
    });
  }
}

/**
 * Notes it with the key of an installation, which is opened when something is dropped.
 * @param archiveOf what tells the archive of a sink: its name may be another's later
 */
export function droppedBy(
  openProof: OpenProof,
  archiveOf: (sink: string) => Promise<string | null> | string | null,
): DroppedEntries['append'] {
  return async (notes) => {
    const placed: DroppedNote[] = [];
    for (const note of notes)
      placed.push(note.sink === null ? note : { ...note, archive: await archiveOf(note.sink) });
    await (await openProof()).dropped.append(placed);
  };
}
