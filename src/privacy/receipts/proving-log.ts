import { MillraceError } from '../../core/errors.ts';
import type { LogSource } from './log-source.ts';
import type { NoteVerifier, TreeHead } from './note.ts';
import { LogEntries } from './prove.ts';
import { parseProof, verifyProof } from './proof-text.ts';

/**
 * A log that is asked for proofs. They are made of hashes that lie beside its entries and can be made again from them: where a
 * proof does not hold, the entries alone say whether the log is another one or its hashes are damaged.
 */
export class ProvingLog {
  readonly #log: LogSource;
  readonly #verifier: NoteVerifier;
  readonly #sizes: ReadonlySet<number>;
  readonly #roots = new Map<number, Promise<Buffer | null>>();
  #entries: Promise<LogEntries | null> | null = null;

  /** @param sizes of the log that `had` may be asked for */
  constructor(log: LogSource, verifier: NoteVerifier, sizes: ReadonlySet<number> = new Set()) {
    this.#log = log;
    this.#verifier = verifier;
    this.#sizes = sizes;
  }

  /**
   * @returns the log's proof of an entry, sound or not; null when the log does not have it yet
   * @throws MillraceError receipts_unusable when the log has it there, and its hashes are damaged; RangeError when another is there
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
   * Whether the log once ended like this.
   * @throws MillraceError receipts_unusable when it did, and its hashes are damaged
   */
  async had({ size, root }: TreeHead): Promise<boolean> {
    const asked = this.#roots.get(size) ?? this.#rootAt(size);
    this.#roots.set(size, asked);
    if ((await asked)?.equals(root) === true) return true;
    if ((await this.#whole())?.roots.get(size)?.equals(root) === true) throw this.#damaged(null);
    return false;
  }

  /** Null when the log has fewer entries, or not all of its hashes. */
  #rootAt(size: number): Promise<Buffer | null> {
    return this.#log.rootAt(size).catch((error: unknown) => {
      if (error instanceof MillraceError) throw error;
      return null;
    });
  }

  /** Null when the entries are not those that the checkpoint was signed for. */
  #whole(): Promise<LogEntries | null> {
    this.#entries ??= LogEntries.read(this.#log, this.#verifier, this.#sizes).catch((error: unknown) => {
      // One that could not be read has the reason as its cause.
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
