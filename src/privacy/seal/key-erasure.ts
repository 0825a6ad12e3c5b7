import { leftBy, type ErasableStore, type ErasureRun, type TakenOut } from '../../core/erasure.ts';
import { messageOf } from '../../core/errors.ts';
import type { KeyLedger } from '../../core/proof.ts';
import { parseRecord, takenOut } from '../../core/archive-record.ts';
import { entryOfRecord } from '../../core/receipt.ts';
import type { OpenedRecord, SealedRecord } from '../../core/sealed-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { KeyRing } from './key-ring.ts';
import { KeyStore } from './key-store.ts';

type OpenStore = () => Promise<{ readonly store: KeyStore; close(): Promise<void> }>;

const UNNAMED = {
  item: 'sealed records that name no user',
  requests: [],
  reason: 'they are sealed by team, so the ids in their bodies cannot be searched',
};

const KEYS = 'keys.bin';
const UNREAD = { item: 'sealed records that could not be looked at', requests: [] };
const ELSEWHERE =
  'nobody can tell here whose they are: erase where those keys are, such as at the other receivers of the archive';

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
      const { entries, closed } = await this.#look(run, store.ring);
      for (const subject of run.subjects) {
        run.signal.throwIfAborted();
        const { request } = subject;
        try {
          await store.destroy(subject, async (keys) => {
            if (this.#isRecorded(run, request)) return;
            const own = [...(entries.get(request) ?? [])];
            const item = { store: this.name, item: KEYS, removed: { [request]: keys } };
            const more = own.length === 0 ? {} : { entries: { [request]: own } };
            await run.record({ ...item, sha256_before: null, sha256_after: null, ...more });
            run.onStep('recorded');
          });
        } catch (error) {
          run.leave(leftBy(this.name, KEYS, [subject], error));
        }
        run.onStep('destroyed');
      }
      if (store.ring.sealsUnnamed) run.leave({ store: this.name, ...UNNAMED });
      const others = `${closed} sealed records of keys that are not in this store`;
      if (closed > 0) run.leave({ store: this.name, item: others, requests: [], reason: ELSEWHERE });
    } finally {
      await close();
    }
  }

  #isRecorded({ recorded }: ErasureRun, request: string): boolean {
    return recorded.some(({ store, removed }) => store === this.name && request in removed);
  }

  /**
   * Looks at all records before a key is destroyed, and tells the journal of those that the keys open. That they cannot be read keeps no key.
   * @returns what the log of receipts has of these, base64, by request; and how many records are sealed with keys of another store
   */
  async #look(
    run: ErasureRun,
    ring: KeyRing,
  ): Promise<{ readonly entries: ReadonlyMap<string, ReadonlySet<string>>; readonly closed: number }> {
    const found = new Map<string, Set<string>>();
    const requests = new Map<string, string[]>();
    for (const subject of run.subjects) {
      const { request } = subject;
      if (this.#isRecorded(run, request)) continue;
      for (const { id } of ring.ownedBy(subject))
        getOrMake(requests, id.toString('hex'), () => []).push(request);
    }
    const events: TakenOut[] = [];
    let closed = 0;
    const open = (sealed: SealedRecord): OpenedRecord => {
      if (!ring.has(sealed.key)) closed += 1;
      const own = requests.get(sealed.key);
      const opened = own === undefined ? null : ring.open(sealed);
      const parsed = opened?.ok === true ? parseRecord(opened.line) : null;
      if (parsed?.ok === true) events.push(takenOut(parsed.record, parsed.body));
      const entry =
        run.hasLog === true && parsed?.ok === true ? entryOfRecord(parsed.record, parsed.body) : null;
      if (entry !== null)
        for (const request of own ?? [])
          getOrMake(found, request, () => new Set()).add(entry.toString('base64'));
      return { ok: false, why: 'no_keys' };
    };
    try {
      await run.showSealed?.({ open });
    } catch (error) {
      run.signal.throwIfAborted();
      run.leave({ store: this.name, ...UNREAD, reason: messageOf(error) });
    }
    await run.forget?.(events);
    return { entries: found, closed };
  }
}
