import { closeSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { OpenedRecord, RecordOpener, SealedRecord } from '../../core/sealed-record.ts';
import { openIfThere } from '../../lib/durable.ts';
import { readSlot, SLOT } from './key-file.ts';
import type { KeyRing } from './key-ring.ts';
import { KEYS } from './key-store.ts';

/**
 * Opens records with the keys of a store that a receiver may be writing: a key is on disk before its first record, so a key
 * that is unknown is looked for among those added since.
 */
export class GrowingKeys implements RecordOpener {
  readonly #ring: KeyRing;
  readonly #file: string;

  /** @param path folder of the store that the ring was read from */
  constructor(ring: KeyRing, path: string) {
    this.#ring = ring;
    this.#file = join(resolve(path), KEYS);
  }

  get destroyed(): number {
    return this.#ring.destroyed;
  }

  /** @throws the system's error when the store cannot be read */
  open(sealed: SealedRecord): OpenedRecord {
    const opened = this.#ring.open(sealed);
    if (opened.ok || opened.why !== 'unknown_key') return opened;
    this.#readOn();
    return this.#ring.open(sealed);
  }

  #readOn(): void {
    const fd = openIfThere(this.#file);
    if (fd === null) return;
    try {
      const slot = Buffer.alloc(SLOT);
      // A slot that is being written is read the next time.
      while (readSync(fd, slot, 0, SLOT, this.#ring.end) === SLOT && 'id' in readSlot(slot))
        this.#ring.append(Buffer.from(slot));
    } finally {
      closeSync(fd);
    }
  }
}
