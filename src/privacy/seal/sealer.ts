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

/** Seals records with the keys of a store that it opens, and opens sealed ones. */
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
   * Calls `write` with the sealed records of the events, each with its line feed, in pieces. Their keys are durable before, and
   * are not destroyed until `write` has settled; then the pieces are reused.
   */
  seal<T>(events: readonly Event[], write: (lines: readonly Buffer[]) => Promise<T>): Promise<T> {
    return this.sealGroups([events], ([lines = []]) => write(lines));
  }

  /** The same for groups of events. All keys are lent at once: lent one by one they could deadlock with an erasure. */
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
          // Lets deliveries in between two jobs.
          if (work.length > 1 || own.length > 0) await setImmediate();
          const lines = this.#threads.seal(job);
          // Handled below, once all jobs are handed over.
          lines.catch(() => undefined);
          own.push(lines);
        }
        from += events.length;
      }
      // Also after a failure: the keys are in use until the last job is done.
      await Promise.allSettled(work.flat());
      const lines = await Promise.all(work.map(async (own) => (await Promise.all(own)).map(asBuffer)));
      try {
        return await write(lines);
      } finally {
        for (const { buffer } of lines.flat()) this.#buffers.give(Buffer.from(buffer));
      }
    });
  }

  /** Sealing in progress fails. */
  async close(): Promise<void> {
    await this.#threads.close();
    await this.store.close();
  }
}

/** The events as a manifest counts them when they are sealed. */
export function sealedTypes(events: readonly Event[]): readonly Pick<Event, 'type' | 'receivedAt'>[] {
  return events.map(({ receivedAt }) => ({ type: SEALED_TYPE, receivedAt }));
}
