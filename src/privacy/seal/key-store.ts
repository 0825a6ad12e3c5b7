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
/** Milliseconds between two notes of the newest key. */
const NOTE_EVERY = 60_000;

/** A key and its id. */
export interface OwnedKey {
  /** 32 hex digits, random. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Buffer;
}

interface StoreParts {
  /** The folder as the config names it: the ledger notes it by this name, so that a missing mount is noticed. */
  readonly named: string;
  readonly ledger: KeyLedger | null;
  readonly lock: FileLock;
}

/**
 * The keys of sealed records, in one file, for the one process that may make and destroy them.
 *
 * A key is on disk before it is lent, so no record outlives its key in a crash. Destroying a key overwrites it with a mark
 * that needs the master key, and notes it in the ledger: a key restored from a copy is recognised.
 */
export class KeyStore {
  /** The folder, without links. */
  readonly path: string;
  readonly #parts: StoreParts;
  readonly #serial = new Serial();
  /** Uses of keys in progress. */
  readonly #loans = new Set<Promise<unknown>>();
  #file: AppendFile;
  #ring: KeyRing;
  /** When the newest key was noted in the ledger, on the monotonic clock. */
  #notedAt = 0;

  private constructor(path: string, ring: KeyRing, file: AppendFile, parts: StoreParts) {
    this.path = path;
    this.#ring = ring;
    this.#file = file;
    this.#parts = parts;
  }

  /**
   * Opens the store for writing, and makes it when there is none.
   * @param path folder
   * @param ledger null where no erasure is noted
   * @throws MillraceError keys_unusable, keys_in_use, master_key_wrong, keys_stale, ledger_forged
   */
  static async open(path: string, master: Buffer, ledger: KeyLedger | null = null): Promise<KeyStore> {
    const seen = seenIn(path, ledger);
    return KeyStore.#open(path, ledger, async (folder) => {
      const file = join(folder, KEYS);
      if (lstatSync(file, { throwIfNoEntry: false }) === undefined) refuse(folder, notTheOneSeen(null, seen));
      const ring = await readOrMake(folder, master);
      refuse(folder, problemsOf(ring, ledger, seen));
      return ring;
    });
  }

  /**
   * In a store that was restored from a copy, destroys again what the ledger says was destroyed, and notes it as the current one.
   * @returns how many keys
   * @throws MillraceError as `open` does for what that does not repair
   */
  static async catchUp(path: string, master: Buffer, ledger: KeyLedger): Promise<number> {
    let again = 0;
    const store = await KeyStore.#open(path, ledger, async (folder) => {
      const copy = await readOrMake(folder, master);
      await replaceFile(folder, copy.without(ledger.entries(copy.store)));
      const ring = await KeyRing.read(join(folder, KEYS), master);
      refuse(folder, problemsOf(ring, ledger, null));
      again = ring.destroyed - copy.destroyed;
      return ring;
    });
    await store.close();
    return again;
  }

  static async #open(
    path: string,
    ledger: KeyLedger | null,
    read: (folder: string) => Promise<KeyRing>,
  ): Promise<KeyStore> {
    const named = resolve(path);
    let lock: FileLock | null = null;
    let file: AppendFile | null = null;
    try {
      makeFolder(named, 0o700);
      const folder = await realpath(named);
      const refusal = (by: string) => new MillraceError('keys_in_use', `${folder} is held by ${by}`);
      lock = await own(join(folder, LOCK), refusal);
      await rm(join(folder, `${KEYS}${UNFINISHED}`), { force: true });
      const ring = await read(folder);
      file = fileOf(folder, ring);
      // Cuts off an incomplete slot: its key was never lent.
      await file.mend();
      const store = new KeyStore(folder, ring, file, { named, ledger, lock });
      await store.#noteDestroyed();
      await store.#noteNewest();
      return store;
    } catch (error) {
      await file?.close();
      lock?.release();
      throw unusable(named, error);
    }
  }

  /**
   * Reads the current keys, for opening records; writes nothing and needs no lock.
   * @throws MillraceError keys_unusable, master_key_wrong
   */
  static read(path: string, master: Buffer): Promise<KeyRing> {
    return KeyRing.read(join(resolve(path), KEYS), master).catch((error: unknown) => {
      throw unusable(path, error);
    });
  }

  /** The current keys; another object after `rotate`. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /**
   * Lends `use` the key of each owner, in order; a missing key is made, and is durable before. A key is not destroyed while it is
   * lent, and a key about to be destroyed is not lent.
   */
  async lend<T>(owners: readonly Ownership[], use: (keys: readonly OwnedKey[]) => Promise<T>): Promise<T> {
    const known = owners.map((owner) => this.#ring.keyOf(owner));
    if (known.every((key) => key !== null)) return await this.#lent(use(known));
    // In an object, so that the queue does not wait for the use: a destruction in the queue does.
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
   * Destroys every key of the subject. Resolves with their number once they are gone from the disk.
   * @param before called with the number, if there are keys, before the first is touched
   */
  destroy(subject: Subject, before: (keys: number) => Promise<void> = async () => {}): Promise<number> {
    return this.#serial.run(async () => {
      const found = this.#ring.ownedBy(subject);
      if (found.length > 0) await before(found.length);
      // From now on they open and seal nothing, even if writing fails.
      const open = found.map(({ id }) => this.#ring.forget(id));
      await Promise.all(this.#loans);
      for (const key of open) key?.fill(0);
      for (const { id, at } of found) {
        const tombstone = this.#ring.tombstoneFor(id);
        // One by one: a power cut between two that share a sync could leave a gap in their epochs.
        await this.#written(this.#file.overwrite(tombstone.slot, at));
        this.#ring.gone(at, id, tombstone);
      }
      // Also without keys: an earlier run may have failed here.
      await this.#noteDestroyed();
      if (found.length > 0) await this.#noteNewest();
      return found.length;
    });
  }

  /** Notes the newest key in the ledger, which distinguishes this store from older copies of it. */
  async #noteNewest(): Promise<void> {
    const { ledger, named } = this.#parts;
    const { store, newest } = this.#ring;
    this.#notedAt = performance.now();
    await ledger?.see(named, { store, newest });
  }

  /** Adds to the ledger the destroyed keys that it lacks. */
  async #noteDestroyed(): Promise<void> {
    const { ledger } = this.#parts;
    if (ledger === null) return;
    const { store, tombstones } = this.#ring;
    const noted = ledger.entries(store);
    if (noted.length > 0 && noted.at(-1)?.epoch === tombstones.last) return;
    const known = new Set(noted.map(({ key }) => key));
    const first = noted.length === 0 ? [{ store, epoch: 0, key: null }] : [];
    const fresh = tombstones
      .entries()
      .flatMap(([key, epoch]) => (epoch === 0 || known.has(key) ? [] : [{ store, epoch, key }]));
    if (first.length + fresh.length > 0) await ledger.append([...first, ...fresh]);
  }

  /**
   * Wraps every key with another master key, in a new file; the old file is overwritten. Until it resolves the store needs the
   * old master key, afterwards the new one.
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
      // The next start notes it as well.
      await this.#noteNewest().catch(() => undefined);
      this.#parts.lock.release();
    });
  }

  async #add(owners: readonly Ownership[]): Promise<void> {
    const made = this.#ring.slotsFor(owners);
    if (made.length === 0) return;
    await this.#written(this.#file.append(Buffer.concat(made)));
    for (const slot of made) this.#ring.append(slot);
    // A ledger that cannot be written does not hold up records; the next note tries again.
    if (performance.now() - this.#notedAt > NOTE_EVERY) await this.#noteNewest().catch(() => undefined);
  }

  #written(writing: Promise<void>): Promise<void> {
    return writing.catch((error: unknown) => {
      throw unusable(this.path, error);
    });
  }
}

async function readOrMake(folder: string, master: Buffer): Promise<KeyRing> {
  const file = join(folder, KEYS);
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined)
    await writeDurably(folder, KEYS, newHeader(master).header, OWNER_ONLY);
  else await syncFound(file);
  return KeyRing.read(file, master);
}

function fileOf(folder: string, { end }: KeyRing): AppendFile {
  return new AppendFile(join(folder, KEYS), end);
}

/** Replaces the file, and overwrites the old one: a copy of the disk must not contain its keys. */
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
