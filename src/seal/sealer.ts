import { setImmediate } from 'node:timers/promises';
import {
  formatSealed,
  SEALED_TYPE,
  type OpenedRecord,
  type RecordOpener,
  type SealedRecord,
} from '../core/sealed-record.ts';
import type { Event } from '../core/event.ts';
import type { KeyLedger } from '../core/proof.ts';
import { formatRecords } from '../core/archive-record.ts';
import { KeyStore } from './key-store.ts';
import { sealLine } from './record.ts';

/** Records sealed in one go: a few milliseconds. */
const AT_A_TIME = 100;

/** Seals records with the keys of a store that is its own, and opens them again. */
export class Sealer implements RecordOpener {
  readonly store: KeyStore;

  private constructor(store: KeyStore) {
    this.store = store;
  }

  /**
   * @param path folder of the keys, made if missing
   * @throws MillraceError as `KeyStore.open` does
   */
  static async open(path: string, master: Buffer, ledger: KeyLedger | null = null): Promise<Sealer> {
    return new Sealer(await KeyStore.open(path, master, ledger));
  }

  get destroyed(): number {
    return this.store.ring.destroyed;
  }

  open(sealed: SealedRecord): OpenedRecord {
    return this.store.ring.open(sealed);
  }

  /** The sealed records of some events, each with its line feed, in one buffer. Their keys are durable by then. */
  async seal(events: readonly Event[]): Promise<Buffer> {
    const keys = await this.store.keysFor(events);
    let text = '';
    for (const [i, event] of events.entries()) {
      const key = keys[i];
      if (key === undefined) throw new Error('an event has no key');
      // Deliveries that come in meanwhile are not to wait for a whole batch.
      if (i % AT_A_TIME === AT_A_TIME - 1) await setImmediate();
      const line = formatRecords([event]);
      const receivedAt = new Date(event.receivedAt).toISOString();
      // Without the line feed.
      text += formatSealed(sealLine(key.id, key.key, receivedAt, line.subarray(0, -1)));
    }
    return Buffer.from(text, 'latin1');
  }

  async close(): Promise<void> {
    await this.store.close();
  }
}

/** What a manifest is to count these events as. */
export function sealedTypes(events: readonly Event[]): readonly Pick<Event, 'type' | 'receivedAt'>[] {
  return events.map(({ receivedAt }) => ({ type: SEALED_TYPE, receivedAt }));
}
