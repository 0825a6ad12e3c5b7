import { MillraceError } from '../../core/errors.ts';
import type { LogSource } from './log-source.ts';
import type { NoteVerifier, TreeHead } from './note.ts';
import { LogEntries } from './prove.ts';
import { parseProof, verifyProof } from './proof-text.ts';

/**
 * Asks a log for proofs. These are made of hashes beside the entries: where a proof is not valid, the entries are read, which say
 * whether it is another log or its hashes are damaged.
 */
export class ProvingLog {
  readonly #log: LogSource;
  readonly #verifier: NoteVerifier;
  readonly #sizes: ReadonlySet<number>;
  readonly #roots = new Map<number, Promise<Buffer | null>>();
  #entries: Promise<LogEntries | null> | null = null;

  /** @param sizes numbers of entries that `had` may be asked for */
  constructor(log: LogSource, verifier: NoteVerifier, sizes: ReadonlySet<number> = new Set()) {
    this.#log = log;
    this.#verifier = verifier;
    this.#sizes = sizes;
  }

  /**
   * @returns the log's proof of an entry, valid or not; null when the log does not have it yet
   * @throws MillraceError receipts_unusable when its hashes are damaged; RangeError when another entry is there
   */
  async proof(index: number, entry: Buffer): Promise<string | null> {
    let proof: string | null = null;
    let fault: unknown = null;
    try {
      proof = await this.#log.proof(index);
      if (proof === null) return null;
      if (verifyProof(entry, parseProof(proof), this.#verifier).ok) return proof;
    } catch (error) {
      fault = error;
    }
    const whole = await this.#whole();
    if (whole?.isAt(index, entry) === true) throw this.#damaged(fault);
    if (proof !== null) return proof;
    throw whole === null ? fault : new RangeError(`the event is not entry ${index} of the log`);
  }

  /**
   * Whether the log has had this head.
   * @throws MillraceError receipts_unusable when its hashes are damaged
   */
  async had({ size, root }: TreeHead): Promise<boolean> {
    const asked = this.#roots.get(size) ?? this.#rootAt(size);
    this.#roots.set(size, asked);
    if ((await asked)?.equals(root) === true) return true;
    if ((await this.#whole())?.roots.get(size)?.equals(root) === true) throw this.#damaged(null);
    return false;
  }

  /** Null when the log lacks entries or hashes. */
  #rootAt(size: number): Promise<Buffer | null> {
    return this.#log.rootAt(size).catch((error: unknown) => {
      if (error instanceof MillraceError) throw error;
      return null;
    });
  }

  /** Null when the entries do not match the checkpoint. */
  #whole(): Promise<LogEntries | null> {
    this.#entries ??= LogEntries.read(this.#log, this.#verifier, this.#sizes).catch((error: unknown) => {
      // With a cause, the log could not be read.
      if (error instanceof MillraceError && error.cause === undefined) return null;
      throw error;
    });
    return this.#entries;
  }

  #damaged(cause: unknown): MillraceError {
    const detail =
      'its entries are as they were signed, but the hashes beside them are damaged; stop the receiver, ' +
      'remove hashes-* there, and start it: it makes them again from the entries';
    return new MillraceError('receipts_unusable', `${this.#log.name}: ${detail}`, { cause });
  }
}
