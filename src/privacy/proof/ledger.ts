import { hash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { KeyLedger, LedgerEntry, SeenStore } from '../../core/proof.ts';
import { checkSigned, signJson, type Signer } from '../../core/signature.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { lockInTurn } from '../../lib/file-lock.ts';
import { appendLines, readJsonLines } from '../../lib/json-lines.ts';
import { writeDurably } from '../../lib/new-file.ts';

/** Milliseconds to wait for others that write a line. */
const PATIENCE = 10_000;

interface SeenNote extends SeenStore {
  readonly folder: string;
}

/**
 * The ledger as a file of JSON lines: `{"store","epoch","key","signed_by","signature"}`. Beside it, a file for each folder of keys:
 * `{"folder","store","newest","signed_by","signature"}`.
 */
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
    const signer = this.#ownSigner();
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

  seen(folder: string): (SeenStore & { readonly path: string }) | null {
    const path = join(this.#seenFolder, nameOf(folder));
    let text: string | undefined;
    try {
      text = readIfThere(path)?.trimEnd();
    } catch (error) {
      throw new MillraceError('proof_unusable', `${path}: ${messageOf(error)}`, { cause: error });
    }
    if (text === undefined) return null;
    const { state, by } = checkSigned('key store', text);
    const note = state === 'valid' && this.#trusted.has(by) ? (JSON.parse(text) as SeenNote) : null;
    if (note?.folder !== folder)
      throw new MillraceError(
        'ledger_forged',
        `${path} is not as it was signed, or not by a key that is trusted`,
      );
    return { path, store: note.store, newest: note.newest };
  }

  async see(folder: string, { store, newest }: SeenStore): Promise<void> {
    const note: SeenNote = { folder, store, newest };
    const text = signJson('key store', JSON.stringify(note), this.#ownSigner());
    makeFolder(this.#seenFolder, 0o700);
    await writeDurably(this.#seenFolder, nameOf(folder), `${text}\n`, OWNER_ONLY);
  }

  get #seenFolder(): string {
    return join(dirname(this.path), 'key-stores');
  }

  #ownSigner(): Signer {
    if (this.#signer !== null) return this.#signer;
    throw new MillraceError('proof_unusable', `${this.path}: there is no key to sign with`);
  }

  #forged(index: number, why: string): MillraceError {
    return new MillraceError('ledger_forged', `${this.path}: line ${index + 1} ${why}`);
  }
}

function nameOf(folder: string): string {
  return `${hash('sha256', folder, 'hex').slice(0, 16)}.json`;
}
