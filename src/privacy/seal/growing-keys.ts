import { closeSync, openSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { OpenedRecord, RecordOpener, SealedRecord } from '../../core/sealed-record.ts';
import { errorCode } from '../../lib/durable.ts';
import { readSlot, SLOT } from './key-file.ts';
import type { KeyRing } from './key-ring.ts';
import { KEYS } from './key-store.ts';

/**
 * Opens records with the keys of a store that a receiver may be writing to: a key is in the store before its first record is
 * anywhere, so a record whose key is not known is looked for among those that were added since.
 */
export class GrowingKeys implements RecordOpener {
  readonly #ring: KeyRing;
  readonly #file: string;

  /** @param ring read from the store @param path of the store */
  constructor(ring: KeyRing, path: string) {
    this.#ring = ring;
    this.#file = join(resolve(path), KEYS);
  }

  get destroyed(): number {
    return this.#ring.destroyed;
  }

  /** @throws the system's error when the store cannot be read any more */
  open(sealed: SealedRecord): OpenedRecord {
    const opened = this.#ring.open(sealed);
    if (opened.ok || opened.why !== 'unknown_key' || !this.#readOn()) return opened;
    return this.#ring.open(sealed);
  }

  /** Whether there was more. */
  #readOn(): boolean {
    const fd = openUnlessGone(this.#file);
    if (fd === null) return false;
    const before = this.#ring.end;
    try {
      const slot = Buffer.alloc(SLOT);
      // What is being written is read the next time.
      while (readSync(fd, slot, 0, SLOT, this.#ring.end) === SLOT && 'id' in readSlot(slot))
        this.#ring.append(Buffer.from(slot));
      return this.#ring.end > before;
    } finally {
      closeSync(fd);
    }
  }
}

function openUnlessGone(file: string): number | null {
  try {
    return openSync(file, 'r');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}
