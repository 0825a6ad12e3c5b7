import { randomBytes } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Ownership, Subject } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { KeyLedger } from '../../core/proof.ts';
import { AppendFile } from '../../lib/append-file.ts';
import { makeFolder, openPlain, OWNER_ONLY, READ_WRITE, syncFound, writeAll } from '../../lib/durable.ts';
import { UNFINISHED, writeDurably } from '../../lib/new-file.ts';
import { own, type FileLock } from '../../lib/file-lock.ts';
import { Serial } from '../../lib/serial.ts';
import { newHeader } from './key-file.ts';
import { KeyRing } from './key-ring.ts';
import { notTheOneSeen, problemsOf, refuse, seenIn } from './seen.ts';

export const KEYS = 'keys.bin';
const LOCK = 'lock';
/** Milliseconds between two notes of new keys. */
const NOTE_EVERY = 60_000;

/** A key and its id. */
export interface OwnedKey {
  /** 32 hex digits, random. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Buffer;
}

/**
 * The keys of sealed records, in one file, for the one process that may make and destroy them.
 *
 * A key is on disk before anybody is handed it, so that no record can outlive its key by a crash. Destroying one
 * overwrites it where it lies, with a mark that only the master key makes, and notes it in the ledger: a key that is put
 * back from a copy is told from one that was never destroyed.
 */
export class KeyStore {
  readonly path: string;
  readonly #ledger: KeyLedger | null;
  readonly #lock: FileLock;
  readonly #serial = new Serial();
  /** Uses of keys that are under way. */
  readonly #loans = new Set<Promise<unknown>>();
  #file: AppendFile;
  #ring: KeyRing;
  /** Keys that opening it has destroyed again. */
  #again = 0;
  /** When the ledger was told of the newest key, by a clock that only goes on. */
  #seenAt = 0;
  /** The folder as it was named: a mount or a link that is missing must not make it another. */
  readonly #named: string;

  private constructor(
    path: string,
    named: string,
    ledger: KeyLedger | null,
    lock: FileLock,
    ring: KeyRing,
    file: AppendFile,
  ) {
    this.path = path;
    this.#named = named;
    this.#ledger = ledger;
    this.#lock = lock;
    this.#ring = ring;
    this.#file = file;
  }

  /**
   * Opens the store for writing, and makes it when there is none.
   * @param path folder
   * @param ledger null where no erasure is noted anywhere
   * @throws MillraceError keys_unusable, keys_in_use, master_key_wrong, keys_stale, ledger_forged
   */
  static open(path: string, master: Buffer, ledger: KeyLedger | null = null): Promise<KeyStore> {
    return KeyStore.#open(path, master, ledger, 'refuse');
  }

  /**
   * Destroys again what the ledger says was destroyed, in a store that was restored from a copy, and has it be the one that belongs there.
   * @returns how many keys
   * @throws MillraceError as `open` does for what that does not mend
   */
  static async catchUp(path: string, master: Buffer, ledger: KeyLedger): Promise<number> {
    const store = await KeyStore.#open(path, master, ledger, 'catch up');
    try {
      return store.#again;
    } finally {
      await store.close();
    }
  }

  static async #open(
    path: string,
    master: Buffer,
    ledger: KeyLedger | null,
    stale: 'refuse' | 'catch up',
  ): Promise<KeyStore> {
    const wanted = resolve(path);
    let lock: FileLock | null = null;
    let open: AppendFile | null = null;
    try {
      makeFolder(wanted, 0o700);
      const folder = await realpath(wanted);
      const refusal = (by: string) => new MillraceError('keys_in_use', `${folder} is held by ${by}`);
      lock = await own(join(folder, LOCK), refusal);
      await rm(join(folder, `${KEYS}${UNFINISHED}`), { force: true });
      const file = join(folder, KEYS);
      const seen = stale === 'refuse' ? seenIn(wanted, ledger) : null;
      if (lstatSync(file, { throwIfNoEntry: false }) === undefined) {
        refuse(folder, notTheOneSeen(null, seen));
        await writeDurably(folder, KEYS, newHeader(master).header, OWNER_ONLY);
      } else await syncFound(file);
      let ring = await KeyRing.read(file, master);
      const { destroyed } = ring;
      if (stale === 'refuse') refuse(folder, problemsOf(ring, ledger, seen));
      if (stale === 'catch up') {
        const noted = ledger?.entries(ring.store) ?? [];
        await replaceFile(folder, ring.without(noted));
        ring = await KeyRing.read(file, master);
        refuse(folder, problemsOf(ring, ledger, null));
      }
      open = fileOf(folder, ring);
      // A slot that was cut short was handed to nobody.
      await open.mend();
      const store = new KeyStore(folder, wanted, ledger, lock, ring, open);
      store.#again = ring.destroyed - destroyed;
      await store.#note();
      await store.#see();
      return store;
    } catch (error) {
      await open?.close();
      lock?.release();
      throw unusable(wanted, error);
    }
  }

  /**
   * Reads the keys there are now, for opening records; it writes nothing and needs no lock.
   * @throws MillraceError keys_unusable, master_key_wrong
   */
  static async read(path: string, master: Buffer): Promise<KeyRing> {
    try {
      return await KeyRing.read(join(resolve(path), KEYS), master);
    } catch (error) {
      throw unusable(path, error);
    }
  }

  /** The keys as they are now; another object after `rotate`. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /**
   * Hands `use` the key of each owner, in order, made and durable where there was none. A key is not destroyed while
   * somebody has it, and nobody gets one that is about to be.
   */
  async lend<T>(owners: readonly Ownership[], use: (keys: readonly OwnedKey[]) => Promise<T>): Promise<T> {
    const known = owners.map((owner) => this.#ring.keyOf(owner));
    if (known.every((key) => key !== null)) return await this.#lent(use(known));
    // In an object: what it is used for is not waited for in the queue, where a destruction waits for it.
    const { work } = await this.#serial.run(async () => {
      await this.#add(owners);
      const keys = owners.map((owner) => {
        const key = this.#ring.keyOf(owner);
        if (key === null) throw new MillraceError('keys_unusable', `${this.path}: a key is damaged`);
        return key;
      });
      return { work: this.#lent(use(keys)) };
    });
    return await work;
  }

  #lent<T>(work: Promise<T>): Promise<T> {
    const settled: Promise<unknown> = work.catch(() => undefined).finally(() => this.#loans.delete(settled));
    this.#loans.add(settled);
    return work;
  }

  /**
   * Destroys every key of the subject. Returns how many, only after they are gone from the disk.
   * @param before told the number, if there are any, before the first is touched
   */
  destroy(subject: Subject, before: (keys: number) => Promise<void> = async () => {}): Promise<number> {
    return this.#serial.run(async () => {
      const found = this.#ring.ownedBy(subject);
      if (found.length > 0) await before(found.length);
      // From now on they open and seal nothing, whatever becomes of the writing.
      const open = found.map(({ id }) => this.#ring.forget(id));
      await Promise.all(this.#loans);
      for (const key of open) key?.fill(0);
      for (const { id, at } of found) {
        const tombstone = this.#ring.tombstoneFor(id);
        // One after the other: a power cut between two that were synced together could leave a gap in their epochs.
        await this.#written(this.#file.overwrite(tombstone.slot, at));
        this.#ring.gone(at, id, tombstone);
      }
      // Also when there was none: an earlier run may have failed here.
      await this.#note();
      if (found.length > 0) await this.#see();
      return found.length;
    });
  }

  /** Has the ledger tell this store from older copies of it. */
  async #see(): Promise<void> {
    const { store, newest } = this.#ring;
    this.#seenAt = performance.now();
    await this.#ledger?.see(this.#named, { store, newest });
  }

  /** Brings the ledger up to what is destroyed. */
  async #note(): Promise<void> {
    if (this.#ledger === null) return;
    const { store, tombstones } = this.#ring;
    const noted = this.#ledger.entries(store);
    if (noted.length > 0 && noted.at(-1)?.epoch === tombstones.last) return;
    const known = new Set(noted.map(({ key }) => key));
    const first = noted.length === 0 ? [{ store, epoch: 0, key: null }] : [];
    const fresh = [...tombstones.entries()].flatMap(([key, epoch]) =>
      epoch === 0 || known.has(key) ? [] : [{ store, epoch, key }],
    );
    if (first.length + fresh.length > 0) await this.#ledger.append([...first, ...fresh]);
  }

  /**
   * Wraps every key anew under another master key, in a file that takes the place of this one; the old one is
   * overwritten. Before it resolves the old master key is needed, afterwards the new one.
   */
  rotate(master: Buffer): Promise<number> {
    return this.#serial.run(async () => {
      const { file, count } = this.#ring.rewrapped(master);
      await replaceFile(this.path, file);
      this.#ring = await KeyRing.read(join(this.path, KEYS), master);
      await this.#file.close();
      this.#file = fileOf(this.path, this.#ring);
      return count;
    });
  }

  async close(): Promise<void> {
    await this.#serial.run(async () => {
      await this.#file.close();
      // Without it the next start notes it.
      await this.#see().catch(() => undefined);
      this.#lock.release();
    });
  }

  async #add(owners: readonly Ownership[]): Promise<void> {
    const made = this.#ring.slotsFor(owners);
    if (made.length === 0) return;
    await this.#written(this.#file.append(Buffer.concat(made)));
    for (const slot of made) this.#ring.append(slot);
    // A ledger that cannot be written holds up no record; it is tried again.
    if (performance.now() - this.#seenAt > NOTE_EVERY) await this.#see().catch(() => undefined);
  }

  #written(writing: Promise<void>): Promise<void> {
    return writing.catch((error: unknown) => {
      throw unusable(this.path, error);
    });
  }
}

function fileOf(folder: string, { end }: KeyRing): AppendFile {
  return new AppendFile(join(folder, KEYS), end);
}

/** Another file in its place. The old one is overwritten: a copy of the disk is not to find keys in what it leaves. */
async function replaceFile(folder: string, content: Buffer): Promise<void> {
  const old = await openPlain(join(folder, KEYS), READ_WRITE);
  try {
    await writeDurably(folder, KEYS, content, OWNER_ONLY);
    const { size } = await old.stat();
    await writeAll(old, randomBytes(size), 0);
    await old.sync();
  } finally {
    await old.close();
  }
}

function unusable(path: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  return new MillraceError('keys_unusable', `${path}: ${messageOf(error)}`, { cause: error });
}
