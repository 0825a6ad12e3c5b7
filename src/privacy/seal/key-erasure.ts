import { leftItemOf, type ErasableStore, type ErasureRun, type RemovedEvent } from '../../core/erasure.ts';
import { messageOf } from '../../core/errors.ts';
import type { KeyLedger } from '../../core/proof.ts';
import { parseRecord, removedEventOf } from '../../core/archive-record.ts';
import { entryOfRecord } from '../../core/receipt.ts';
import type { OpenedRecord, SealedRecord } from '../../core/sealed-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { KEYS, KeyStore } from './key-store.ts';

type OpenStore = () => Promise<{ readonly store: KeyStore; close(): Promise<void> }>;

const UNNAMED = 'they are sealed by team, so the ids in their bodies cannot be searched';
const ELSEWHERE =
  'this store cannot tell whose they are: erase where those keys are, such as at the other receivers of the archive';

/** What the records of an archive show before keys are destroyed. */
interface Found {
  /** Entries of the log of receipts, base64, by request. */
  readonly entries: ReadonlyMap<string, ReadonlySet<string>>;
  /** Records sealed with keys of another store. */
  readonly closed: number;
}

/**
 * Erases the keys of a sealed archive. Destroying a user's keys erases every record they sealed, in every copy of the archive,
 * and touches no file of it. Receipts count the keys, not the records.
 */
export class KeyErasure implements ErasableStore {
  readonly name: string;
  readonly #open: OpenStore;

  private constructor(name: string, open: OpenStore) {
    this.name = `keys of ${name}`;
    this.#open = open;
  }

  /** Of an archive that this process has open: its keys are forgotten in memory too. */
  static live(name: string, store: KeyStore): KeyErasure {
    return new KeyErasure(name, () => Promise.resolve({ store, close: () => Promise.resolve() }));
  }

  /** Of an archive that no process has open. @param master may throw: then nothing is erased, and the error is reported */
  static at(name: string, path: string, master: () => Buffer, ledger?: () => Promise<KeyLedger>): KeyErasure {
    return new KeyErasure(name, async () => {
      const store = await KeyStore.open(path, master(), (await ledger?.()) ?? null);
      return { store, close: () => store.close() };
    });
  }

  async erase(run: ErasureRun): Promise<void> {
    const { store, close } = await this.#open();
    try {
      const { entries, closed } = await this.#look(run, store);
      for (const subject of run.subjects) {
        run.signal.throwIfAborted();
        const { request } = subject;
        const record = async (keys: number): Promise<void> => {
          if (this.#isRecorded(run, request)) return;
          const own = [...(entries.get(request) ?? [])];
          await run.record({
            store: this.name,
            item: KEYS,
            removed: { [request]: keys },
            sha256_before: null,
            sha256_after: null,
            ...(own.length === 0 ? {} : { entries: { [request]: own } }),
          });
          run.onStep('recorded');
        };
        await store.destroy(subject, record).catch((error: unknown) => {
          run.leave(leftItemOf(this.name, KEYS, [subject], error));
        });
        run.onStep('destroyed');
      }
      if (store.ring.sealsUnnamed) this.#leave(run, 'sealed records that name no user', UNNAMED);
      if (closed > 0)
        this.#leave(run, `${closed} sealed records of keys that are not in this store`, ELSEWHERE);
    } finally {
      await close();
    }
  }

  #isRecorded({ recorded }: ErasureRun, request: string): boolean {
    return recorded.some(({ store, removed }) => store === this.name && request in removed);
  }

  /** On every receipt of the run: no request waits for it. */
  #leave(run: ErasureRun, item: string, reason: string): void {
    run.leave({ store: this.name, item, requests: [], reason });
  }

  /** Opens all records of the subjects and has the journal forget them. A record that cannot be read keeps no key alive. */
  async #look(run: ErasureRun, { ring }: KeyStore): Promise<Found> {
    const entries = new Map<string, Set<string>>();
    const requests = new Map<string, string[]>();
    for (const subject of run.subjects) {
      const { request } = subject;
      if (this.#isRecorded(run, request)) continue;
      for (const { id } of ring.ownedBy(subject))
        getOrMake(requests, id.toString('hex'), () => []).push(request);
    }
    const events: RemovedEvent[] = [];
    let closed = 0;
    const open = (sealed: SealedRecord): OpenedRecord => {
      if (!ring.has(sealed.key)) closed += 1;
      const own = requests.get(sealed.key) ?? [];
      const opened = own.length === 0 ? null : ring.open(sealed);
      const parsed = opened?.ok === true ? parseRecord(opened.line) : null;
      if (parsed?.ok === true) {
        const { record, body } = parsed;
        events.push(removedEventOf(record, body));
        const entry = run.hasLog === true ? entryOfRecord(record, body) : null;
        if (entry !== null)
          for (const request of own)
            getOrMake(entries, request, () => new Set()).add(entry.toString('base64'));
      }
      return { ok: false, why: 'no_keys' };
    };
    try {
      await run.showSealed?.({ open });
    } catch (error) {
      run.signal.throwIfAborted();
      this.#leave(run, 'sealed records that could not be looked at', messageOf(error));
    }
    await run.forget?.(events);
    return { entries, closed };
  }
}
