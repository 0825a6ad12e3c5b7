import { setImmediate } from 'node:timers/promises';
import {
  SEALED_TYPE,
  type OpenedRecord,
  type RecordOpener,
  type SealedRecord,
} from '../../core/sealed-record.ts';
import type { Event } from '../../core/event.ts';
import type { KeyLedger } from '../../core/proof.ts';
import { BufferPool } from '../../lib/buffer-pool.ts';
import { asBuffer } from '../../lib/byte-writer.ts';
import { jobsFor } from './job.ts';
import { KeyStore } from './key-store.ts';
import { SealingThreads } from './sealing-threads.ts';

/** Seals records with the keys of a store that is its own, and opens them again. */
export class Sealer implements RecordOpener {
  readonly store: KeyStore;
  readonly #threads = new SealingThreads();
  readonly #buffers = new BufferPool();

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

  /**
   * Hands `write` the sealed records of some events, each with its line feed, in pieces. Their keys are durable by then, and
   * none of them is destroyed, nor are the pieces overwritten, before `write` has settled.
   */
  seal<T>(events: readonly Event[], write: (lines: readonly Buffer[]) => Promise<T>): Promise<T> {
    return this.sealGroups([events], ([lines = []]) => write(lines));
  }

  /**
   * The same for groups that are written together. Their keys are lent at once: who has some and waits for others waits for
   * ever where an erasure, which waits until those are given back, comes first.
   */
  sealGroups<T>(
    groups: readonly (readonly Event[])[],
    write: (lines: readonly (readonly Buffer[])[]) => Promise<T>,
  ): Promise<T> {
    return this.store.lend(groups.flat(), async (keys) => {
      const work: Promise<Uint8Array>[][] = [];
      let from = 0;
      for (const events of groups) {
        const own: Promise<Uint8Array>[] = [];
        work.push(own);
        for (const job of jobsFor(events, keys.slice(from, from + events.length), this.#buffers)) {
          // Deliveries that come in meanwhile are not to wait for a whole batch.
          if (work.length > 1 || own.length > 0) await setImmediate();
          const lines = this.#threads.seal(job);
          // Before the last job is handed over nobody looks at the first.
          lines.catch(() => undefined);
          own.push(lines);
        }
        from += events.length;
      }
      // Also when one has failed: until the last is done its keys are in use.
      await Promise.allSettled(work.flat());
      const lines = await Promise.all(work.map(async (own) => (await Promise.all(own)).map(asBuffer)));
      try {
        return await write(lines);
      } finally {
        for (const { buffer } of lines.flat()) this.#buffers.give(Buffer.from(buffer));
      }
    });
  }

  /** Sealing that is under way fails. */
  async close(): Promise<void> {
    await this.#threads.close();
    await this.store.close();
  }
}

/** What a manifest is to count these events as. */
export function sealedTypes(events: readonly Event[]): readonly Pick<Event, 'type' | 'receivedAt'>[] {
  return events.map(({ receivedAt }) => ({ type: SEALED_TYPE, receivedAt }));
}
