import { dirname } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { KeyLedger, LedgerEntry } from '../core/proof.ts';
import { checkSigned, signJson, type Signer } from '../core/signature.ts';
import { makeFolder } from '../lib/durable.ts';
import { lockInTurn } from '../lib/file-lock.ts';
import { appendLines, readJsonLines } from '../lib/json-lines.ts';

/** Milliseconds to wait for others that write a line. */
const PATIENCE = 10_000;

/** The ledger as a file of JSON lines: `{"store","epoch","key","signed_by","signature"}`. */
export class LedgerFile implements KeyLedger {
  readonly path: string;
  readonly #signer: Signer | null;
  readonly #trusted: ReadonlySet<string>;

  /**
   * @param signer null for one that is only read
   * @param trusted public keys whose lines count
   */
  constructor(path: string, signer: Signer | null, trusted: ReadonlySet<string>) {
    this.path = path;
    this.#signer = signer;
    this.#trusted = trusted;
  }

  entries(store: string): readonly LedgerEntry[] {
    let lines: LedgerEntry[];
    try {
      lines = readJsonLines<LedgerEntry>(this.path);
    } catch (error) {
      throw new MillraceError('proof_unusable', `${this.path}: ${messageOf(error)}`, { cause: error });
    }
    for (const [index, line] of lines.entries()) {
      const { state, by } = checkSigned('ledger', JSON.stringify(line));
      if (state !== 'valid') throw this.#forged(index, 'is not as it was signed');
      if (!this.#trusted.has(by))
        throw this.#forged(index, `is signed by ${by}, which is not in proof.trust`);
    }
    return lines.filter((line) => line.store === store);
  }

  async append(entries: readonly LedgerEntry[]): Promise<void> {
    const signer = this.#signer;
    if (signer === null)
      throw new MillraceError('proof_unusable', `${this.path}: there is no key to sign with`);
    const lines = entries.map(({ store, epoch, key }) =>
      signJson('ledger', JSON.stringify({ store, epoch, key }), signer),
    );
    makeFolder(dirname(this.path), 0o700);
    // Other processes have key stores of their own, and this ledger.
    const lock = await lockInTurn(`${this.path}.lock`, PATIENCE);
    try {
      await appendLines(this.path, lines);
    } finally {
      lock.release();
    }
  }

  #forged(index: number, why: string): MillraceError {
    return new MillraceError('ledger_forged', `${this.path}: line ${index + 1} ${why}`);
  }
}
