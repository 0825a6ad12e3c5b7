import { leftBy, type ErasableStore, type ErasureRun } from '../core/erasure.ts';
import type { KeyLedger } from '../core/proof.ts';
import { KeyStore } from './key-store.ts';

type OpenStore = () => Promise<{ readonly store: KeyStore; close(): Promise<void> }>;

const UNNAMED = {
  item: 'sealed records that name no user',
  requests: [],
  reason: 'they are sealed by team, so the ids in their bodies cannot be searched',
};

/**
 * The keys of a sealed archive, as an erasure sees them. Destroying a user's keys erases every record they sealed, in
 * every copy of the archive, without a file of it being touched. Counted in a receipt are keys, not records.
 */
export class KeyErasure implements ErasableStore {
  readonly name: string;
  readonly #open: OpenStore;

  private constructor(name: string, open: OpenStore) {
    this.name = `keys of ${name}`;
    this.#open = open;
  }

  /** Of an archive that is open here: its keys are forgotten in memory too. */
  static live(name: string, store: KeyStore): KeyErasure {
    return new KeyErasure(name, () => Promise.resolve({ store, close: () => Promise.resolve() }));
  }

  /** Of an archive that nobody has open. @param master may throw; then nothing is erased, and that is said */
  static at(name: string, path: string, master: () => Buffer, ledger?: () => Promise<KeyLedger>): KeyErasure {
    return new KeyErasure(name, async () => {
      const store = await KeyStore.open(path, master(), (await ledger?.()) ?? null);
      return { store, close: () => store.close() };
    });
  }

  async erase(run: ErasureRun): Promise<void> {
    const { store, close } = await this.#open();
    try {
      for (const subject of run.subjects) {
        run.signal.throwIfAborted();
        const { request } = subject;
        try {
          await store.destroy(subject, async (keys) => {
            if (run.recorded.some(({ store: name, removed }) => name === this.name && request in removed))
              return;
            const item = { store: this.name, item: 'keys.bin', removed: { [request]: keys } };
            await run.record({ ...item, sha256_before: null, sha256_after: null });
            run.onStep('recorded');
          });
        } catch (error) {
          run.leave(leftBy(this.name, 'keys.bin', [subject], error));
        }
        run.onStep('destroyed');
      }
      if (store.ring.sealsUnnamed) run.leave({ store: this.name, ...UNNAMED });
    } finally {
      await close();
    }
  }
}
