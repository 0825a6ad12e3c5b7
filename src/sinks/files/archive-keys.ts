import type { ErasableStore } from '../../core/erasure.ts';
import type { SinkContext } from '../../core/sink.ts';
import { KeyErasure } from '../../privacy/seal/key-erasure.ts';
import { Sealer } from '../../privacy/seal/sealer.ts';
import type { FilesOptions } from './config.ts';

/** The keys of a sealed archive, open while its sink is; of an archive that is not sealed, nothing. */
export class ArchiveKeys {
  readonly #encrypt: FilesOptions['encrypt'];
  readonly #context: Pick<SinkContext, 'name' | 'proof'>;
  #opened: Sealer | null = null;

  constructor({ encrypt }: FilesOptions, context: Pick<SinkContext, 'name' | 'proof'>) {
    this.#encrypt = encrypt;
    this.#context = context;
  }

  get isSealed(): boolean {
    return this.#encrypt !== undefined;
  }

  /** @throws Error while the keys are not open */
  get sealer(): Sealer {
    if (this.#opened === null) throw new Error('the keys are not open');
    return this.#opened;
  }

  /** @throws MillraceError keys_unusable, keys_in_use or master_key_wrong */
  async open(): Promise<void> {
    if (this.#encrypt === undefined || this.#opened !== null) return;
    const { store, masterKey } = this.#encrypt;
    const ledger = (await this.#context.proof?.())?.ledger ?? null;
    this.#opened = await Sealer.open(store, masterKey, ledger);
  }

  /** Null while the keys are not open, and for an archive that is not sealed. */
  erasable(): ErasableStore | null {
    return this.#opened === null ? null : KeyErasure.live(this.#context.name, this.#opened.store);
  }

  async close(): Promise<void> {
    const sealer = this.#opened;
    this.#opened = null;
    await sealer?.close();
  }
}
