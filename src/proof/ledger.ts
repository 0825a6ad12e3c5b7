import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { KeyLedger, LedgerEntry } from '../core/proof.ts';
import { checkSigned, signJson, type Signer } from '../core/signature.ts';
import { appendLines, readJsonLines } from '../lib/json-lines.ts';
import { Serial } from '../lib/serial.ts';

/** The ledger as a file of JSON lines: `{"store","epoch","key","signed_by","signature"}`. */
export class LedgerFile implements KeyLedger {
  readonly path: string;
  readonly #signer: Signer | null;
  readonly #trusted: ReadonlySet<string>;
  readonly #serial = new Serial();

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
        throw this.#forged(index, `is signed by ${by}, which proof.trust does not name`);
    }
    return lines.filter((line) => line.store === store);
  }

  append(entries: readonly LedgerEntry[]): Promise<void> {
    const signer = this.#signer;
    if (signer === null)
      throw new MillraceError('proof_unusable', `${this.path}: there is no key to sign with`);
    const lines = entries.map(({ store, epoch, key }) =>
      signJson('ledger', JSON.stringify({ store, epoch, key }), signer),
    );
    return this.#serial.run(async () => {
      await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
      await appendLines(this.path, lines);
    });
  }

  #forged(index: number, why: string): MillraceError {
    return new MillraceError('ledger_forged', `${this.path}: line ${index + 1} ${why}`);
  }
}
