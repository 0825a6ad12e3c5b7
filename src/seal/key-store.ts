import { randomBytes, type KeyObject } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Ownership, Subject } from '../core/erasure.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import {
  errorCode,
  openPlain,
  OWNER_ONLY,
  READ_WRITE,
  UNFINISHED,
  writeAll,
  writeDurably,
} from '../lib/durable.ts';
import { tryLock, type FileLock } from '../lib/file-lock.ts';
import { Serial } from '../lib/serial.ts';
import { destroyedSlot, newHeader } from './key-file.ts';
import { KeyRing } from './key-ring.ts';

const FILE = 'keys.bin';
const LOCK = 'lock';

/** A key and its id. */
export interface OwnedKey {
  /** 32 hex digits, random. */
  readonly id: string;
  readonly key: KeyObject;
}

/**
 * The keys of sealed records, in one file, for the one process that may make and destroy them.
 *
 * Modes: `open` → `suspect` when a write or sync failed, so that what lies beyond the last whole slot is unknown; back
 * to `open` by the next write, after cutting it off. Either → `closed`, for good.
 *
 * A key is on disk before anybody is handed it, so that no record can outlive its key by a crash. Destroying one
 * overwrites it where it lies.
 */
export class KeyStore {
  readonly path: string;
  readonly #lock: FileLock;
  readonly #serial = new Serial();
  #handle: FileHandle;
  #ring: KeyRing;
  #mode: 'open' | 'suspect' | 'closed' = 'open';

  private constructor(path: string, lock: FileLock, handle: FileHandle, ring: KeyRing) {
    this.path = path;
    this.#lock = lock;
    this.#handle = handle;
    this.#ring = ring;
  }

  /**
   * Opens the store for writing, and makes it when there is none.
   * @param path folder
   * @throws MillraceError keys_unusable, keys_in_use, master_key_wrong
   */
  static async open(path: string, master: Buffer): Promise<KeyStore> {
    const wanted = resolve(path);
    let lock: FileLock | null = null;
    let handle: FileHandle | null = null;
    try {
      await mkdir(wanted, { recursive: true, mode: 0o700 });
      const folder = await realpath(wanted);
      lock = tryLock(join(folder, LOCK));
      if (lock === null)
        throw new MillraceError('keys_in_use', `${folder}: a receiver, or another sink, has it open`);
      await rm(join(folder, `${FILE}${UNFINISHED}`), { force: true });
      const file = join(folder, FILE);
      handle = await openPlain(file, READ_WRITE).catch(async (error: unknown) => {
        if (errorCode(error) !== 'ENOENT') throw error;
        await writeDurably(folder, FILE, newHeader(master).header, OWNER_ONLY);
        return await openPlain(file, READ_WRITE);
      });
      const ring = await KeyRing.read(file, master);
      // A slot that was cut short was handed to nobody.
      if ((await handle.stat()).size > ring.end) await handle.truncate(ring.end);
      return new KeyStore(folder, lock, handle, ring);
    } catch (error) {
      await handle?.close();
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
      return await KeyRing.read(join(resolve(path), FILE), master);
    } catch (error) {
      throw unusable(path, error);
    }
  }

  /** The keys as they are now; another object after `rotate`. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /** The key of each owner, in order, made and durable where there was none. */
  async keysFor(owners: readonly Ownership[]): Promise<readonly OwnedKey[]> {
    const known = owners.map((owner) => this.#ring.keyOf(owner));
    if (known.every((key) => key !== null)) return known;
    return await this.#serial.run(async () => {
      await this.#add(owners);
      return owners.map((owner) => {
        const key = this.#ring.keyOf(owner);
        if (key === null) throw new MillraceError('keys_unusable', `${this.path}: a key is damaged`);
        return key;
      });
    });
  }

  /**
   * Destroys every key of the subject. Returns how many, only after they are gone from the disk.
   * @param before told the number, if there are any, before the first is touched
   */
  destroy(subject: Subject, before: (keys: number) => Promise<void> = async () => {}): Promise<number> {
    return this.#serial.run(async () => {
      const found = this.#ring.ownedBy(subject);
      if (found.length === 0) return 0;
      await before(found.length);
      // From now on they open and seal nothing, whatever becomes of the writing.
      for (const { id } of found) this.#ring.forget(id);
      await this.#write(async (handle) => {
        for (const { id, at } of found) await writeAll(handle, destroyedSlot(id), at);
      });
      for (const { id, at } of found) this.#ring.gone(at, destroyedSlot(id));
      return found.length;
    });
  }

  /**
   * Wraps every key anew under another master key, in a file that takes the place of this one; the old one is
   * overwritten. Before it resolves the old master key is needed, afterwards the new one.
   */
  rotate(master: Buffer): Promise<number> {
    return this.#serial.run(async () => {
      const { file, count } = this.#ring.rewrapped(master);
      await writeDurably(this.path, FILE, file, OWNER_ONLY);
      const old = this.#handle;
      this.#handle = await openPlain(join(this.path, FILE), READ_WRITE);
      this.#ring = await KeyRing.read(join(this.path, FILE), master);
      // It has no name any more; a copy of the disk is not to find keys in what it leaves.
      const { size } = await old.stat();
      await writeAll(old, randomBytes(size), 0);
      await old.sync();
      await old.close();
      return count;
    });
  }

  async close(): Promise<void> {
    await this.#serial.run(async () => {
      if (this.#mode === 'closed') return;
      this.#mode = 'closed';
      await this.#handle.close();
      this.#lock.release();
    });
  }

  async #add(owners: readonly Ownership[]): Promise<void> {
    const made = this.#ring.slotsFor(owners);
    if (made.length === 0) return;
    const at = this.#ring.end;
    await this.#write((handle) => writeAll(handle, Buffer.concat(made), at));
    for (const slot of made) this.#ring.append(slot);
  }

  async #write(write: (handle: FileHandle) => Promise<void>): Promise<void> {
    if (this.#mode === 'closed') throw new MillraceError('keys_unusable', `${this.path} is closed`);
    if (this.#mode === 'suspect') await this.#reopen();
    try {
      await write(this.#handle);
      await this.#handle.datasync();
    } catch (error) {
      this.#mode = 'suspect';
      throw unusable(this.path, error);
    }
  }

  /** The kernel tells a failed sync once and then forgets it, so the handle is not to be trusted again. */
  async #reopen(): Promise<void> {
    const handle = await openPlain(join(this.path, FILE), READ_WRITE);
    await handle.truncate(this.#ring.end);
    await this.#handle.close().catch(() => undefined);
    this.#handle = handle;
    this.#mode = 'open';
  }
}

function unusable(path: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  return new MillraceError('keys_unusable', `${path}: ${messageOf(error)}`, { cause: error });
}
