import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import type { KeyLedger, LedgerEntry, SeenStore } from '../../core/proof.ts';
import { fileNameFor, type SignedFiles } from './signed-files.ts';

/**
 * The ledger in an erasure folder: `ledger.jsonl`, with a line `{"store","epoch","key","signed_by","signature"}` for each key,
 * and a file in `key-stores` for each folder of keys: `{"folder","store","newest","signed_by","signature"}`.
 */
export class LedgerFile implements KeyLedger {
  readonly path: string;
  readonly #seenFolder: string;
  readonly #files: SignedFiles;

  /** @param folder the erasure folder */
  constructor(folder: string, files: SignedFiles) {
    this.path = join(folder, 'ledger.jsonl');
    this.#seenFolder = join(folder, 'key-stores');
    this.#files = files;
  }

  entries(store: string): readonly LedgerEntry[] {
    const lines = this.#files.lines<LedgerEntry>('ledger', this.path);
    for (const [index, { signature, isTrusted }] of lines.entries()) {
      if (isTrusted) continue;
      const { state, by } = signature;
      const why =
        state === 'valid' ? `is signed by ${by}, which is not in proof.trust` : 'is not as it was signed';
      throw new MillraceError('ledger_forged', `${this.path}: line ${index + 1} ${why}`);
    }
    return lines.map(({ value }) => value).filter((line) => line.store === store);
  }

  async append(entries: readonly LedgerEntry[]): Promise<void> {
    const lines = entries.map(({ store, epoch, key }) => ({ store, epoch, key }));
    await this.#files.append('ledger', this.path, lines);
  }

  seen(folder: string): (SeenStore & { readonly path: string }) | null {
    const path = join(this.#seenFolder, fileNameFor(folder));
    const note = this.#files.read<SeenStore & { readonly folder: string }>('key store', path);
    if (note === null) return null;
    if (note === 'forged' || note.folder !== folder)
      throw new MillraceError(
        'ledger_forged',
        `${path} is not as it was signed, or not by a key that is trusted`,
      );
    return { path, store: note.store, newest: note.newest };
  }

  async see(folder: string, { store, newest }: SeenStore): Promise<void> {
    await this.#files.write('key store', this.#seenFolder, fileNameFor(folder), { folder, store, newest });
  }
}
