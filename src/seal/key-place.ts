import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import type { Ownership, Subject } from '../core/erasure.ts';
import { MillraceError } from '../core/errors.ts';
import { StorageError, type ObjectStore } from '../core/storage.ts';
import {
  activeSlot,
  destroyedSlot,
  isTombstone,
  newHeader,
  openHeader,
  readSlot,
  SLOT,
  unwrapKey,
  type FileKeys,
} from './key-file.ts';
import { OwnerHash } from './owner.ts';

const HEADER = 'header';
/** Keys lie below it by the first byte of their names: a folder of millions is slow. */
const KEYS = 'keys';
const [KEY_BYTES, ID_BYTES, HASH_BYTES] = [32, 16, 16];
const TRIES = 20;
/** Objects that are read at once to count them. */
const AT_ONCE = 32;

/** What stands in an object: the owner's key of now, if there is one, and the ids of those that were destroyed. */
export interface Owned {
  readonly id: string | null;
  readonly key: KeyObject | null;
  readonly destroyed: readonly string[];
}

/**
 * Keys in a place that many processes share: an object for each owner, of slots as a key file has them. Only the last can
 * hold a key; each before it is the mark of one that was destroyed. Every change replaces the version that was read, so
 * that of two who make or destroy a key at once one finds what the other did.
 */
export class KeyPlace {
  readonly #store: ObjectStore;
  readonly #header: Buffer;
  readonly #keys: FileKeys;
  readonly #hash: OwnerHash;

  private constructor(store: ObjectStore, header: Buffer, keys: FileKeys) {
    this.#store = store;
    this.#header = header;
    this.#keys = keys;
    this.#hash = new OwnerHash(keys.lookup);
  }

  /**
   * @param isNew whether nothing can have been sealed yet: only then an empty place is begun, for it may be one that is not mounted
   * @throws MillraceError master_key_wrong, keys_unusable; StorageError
   */
  static async open(store: ObjectStore, master: Buffer, isNew: () => Promise<boolean>): Promise<KeyPlace> {
    let header = await bytesOf(store, HEADER);
    if (header === null) {
      if (await isNew()) await store.putIfAbsent(HEADER, { bytes: newHeader(master).header });
      // It may be another's, who was first.
      header = await bytesOf(store, HEADER);
    }
    if (header === null)
      throw new MillraceError(
        'keys_unusable',
        `${store.url} has no keys, and the topics have records: is it mounted? \`millrace keys begin\` begins it for topics of which nothing is sealed yet`,
      );
    let keys: FileKeys | null;
    try {
      keys = openHeader(header, master);
    } catch (error) {
      throw new MillraceError('keys_unusable', `${store.url}/${HEADER} is not of a place of keys`, {
        cause: error,
      });
    }
    if (keys === null)
      throw new MillraceError('master_key_wrong', `${store.url} was created with another master key`);
    return new KeyPlace(store, header, keys);
  }

  /** Says which place it is, wherever it lies: a copy has the same. */
  get id(): string {
    return this.#keys.store;
  }

  get url(): string {
    return this.#store.url;
  }

  /** What only who has the master key can say of a text, in hex. */
  vouch(text: string): string {
    return createHmac('sha256', this.#keys.tombstone).update(`note ${text}`).digest('hex');
  }

  /** Whether it is still the place that was opened, and not the empty folder below it. @throws StorageError */
  async check(): Promise<void> {
    const header = await bytesOf(this.#store, HEADER);
    if (header?.equals(this.#header) === true) return;
    const what = header === null ? 'is empty: is it mounted?' : 'is not the place that was opened';
    throw new StorageError('unreachable', `${this.#store.url} ${what}`);
  }

  /** What an owner's key is called: keyed hashes of user, client user and team, in hex. */
  nameOf({ team, user, clientUser }: Ownership): string {
    const hash = this.#hash.of({ team, user, clientUser });
    return Buffer.concat([hash.subarray(HASH_BYTES), hash.subarray(0, HASH_BYTES)]).toString('hex');
  }

  /** @throws MillraceError keys_unusable */
  async read(name: string): Promise<Owned> {
    return this.#ownedIn(await bytesOf(this.#store, pathOf(name)), name);
  }

  /** The owner's key, made and durable where there is none. */
  async make(name: string): Promise<Owned> {
    const found = await this.#change(name, (bytes, { key }) => {
      if (key !== null) return null;
      const slot = activeSlot(
        this.#keys.wrapping,
        randomBytes(ID_BYTES),
        ownerIn(name),
        randomBytes(KEY_BYTES),
      );
      return Buffer.concat([bytes ?? NOTHING, slot]);
    });
    return found.owned;
  }

  /** Puts a mark in the place of the owner's key. @returns what is left, and what the store still keeps of before */
  async destroy(name: string): Promise<{ owned: Owned; kept: readonly string[] }> {
    const { owned } = await this.#change(name, (bytes, { id, destroyed }) => {
      if (bytes === null || id === null) return null;
      const mark = destroyedSlot(this.#keys, Buffer.from(id, 'hex'), destroyed.length + 1);
      return Buffer.concat([bytes.subarray(0, -SLOT), mark]);
    });
    // Also when there was no key any more: whoever destroyed it may have been killed before this.
    const { kept } = await this.#store.purge(pathOf(name));
    return { owned, kept };
  }

  /** How many owners have a key, and how many keys were destroyed; objects that are no owner's are damaged. */
  async counts(): Promise<{ active: number; destroyed: number; damaged: number }> {
    const counts = { active: 0, destroyed: 0, damaged: 0 };
    const count = async (name: string): Promise<void> => {
      try {
        const { key, destroyed } = await this.read(name);
        counts.active += Number(key !== null);
        counts.destroyed += destroyed.length;
      } catch (error) {
        if (!(error instanceof MillraceError)) throw error;
        counts.damaged += 1;
      }
    };
    let names: string[] = [];
    for await (const { key } of this.#store.list(`${KEYS}/`)) {
      names.push(key.slice(key.lastIndexOf('/') + 1));
      if (names.length < AT_ONCE) continue;
      await Promise.all(names.map(count));
      names = [];
    }
    await Promise.all(names.map(count));
    return counts;
  }

  /** Names of what the subject owns, whether the keys are there or destroyed. */
  async *ownedBy(subject: Subject, signal?: AbortSignal): AsyncGenerator<string> {
    const owned = this.#hash.owned(subject);
    const prefix =
      subject.by === 'user'
        ? pathOf(this.nameOf({ team: null, user: subject.id, clientUser: null })).slice(0, -4 * HASH_BYTES)
        : `${KEYS}/`;
    for await (const { key } of this.#store.list(prefix, signal)) {
      const name = key.slice(key.lastIndexOf('/') + 1);
      if (/^[0-9a-f]{96}$/.test(name) && owned(ownerIn(name))) yield name;
    }
  }

  /** Whose a name is. */
  isOwned(subjects: readonly Subject[]): (name: string) => readonly string[] {
    const all = subjects.map((subject) => [subject.request, this.#hash.owned(subject)] as const);
    return (name) => all.flatMap(([request, owned]) => (owned(ownerIn(name)) ? [request] : []));
  }

  async #change(
    name: string,
    change: (bytes: Buffer | null, owned: Owned) => Buffer | null,
  ): Promise<{ owned: Owned }> {
    const path = pathOf(name);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const there = await this.#store.head(path);
      const bytes = there === null ? null : await bytesOf(this.#store, path, there.version);
      if (bytes === CHANGED) continue;
      const owned = this.#ownedIn(bytes, name);
      const next = change(bytes, owned);
      // Before and after: what was found or written elsewhere is nobody's key.
      await this.check();
      if (next === null) return { owned };
      const put =
        there === null
          ? await this.#store.putIfAbsent(path, { bytes: next })
          : await this.#store.putIfMatch(path, there.version, { bytes: next });
      if (put.status !== 'written') continue;
      await this.check();
      return { owned: this.#ownedIn(next, name) };
    }
    throw new StorageError('busy', `${this.#store.url}/${path}: others replace it again and again`);
  }

  #ownedIn(bytes: Buffer | null, name: string): Owned {
    const destroyed: string[] = [];
    for (let at = 0; at < (bytes?.length ?? 0); at += SLOT) {
      const slot = bytes?.subarray(at, at + SLOT) ?? NOTHING;
      const found = slot.length === SLOT ? readSlot(slot) : DAMAGED;
      if (found.state === 'destroyed' && isTombstone(this.#keys, slot))
        destroyed.push(found.id.toString('hex'));
      else if (found.state === 'active' && at + SLOT === bytes?.length && found.owner.equals(ownerIn(name))) {
        const key = unwrapKey(this.#keys.wrapping, found);
        if (key !== null) return { id: found.id.toString('hex'), key: createSecretKey(key), destroyed };
      }
      if (destroyed.length * SLOT !== at + SLOT)
        throw new MillraceError('keys_unusable', `${this.#store.url}/${pathOf(name)} is damaged or forged`);
    }
    return { id: null, key: null, destroyed };
  }
}

const NOTHING = Buffer.alloc(0);
/** A buffer of its own: the version that was asked for is not there any more. */
const CHANGED = Buffer.alloc(0);
const DAMAGED = { state: 'damaged' } as const;

function pathOf(name: string): string {
  return `${KEYS}/${name.slice(0, 2)}/${name}`;
}

/** The owner's hashes in the order in which a slot has them. */
function ownerIn(name: string): Buffer {
  const bytes = Buffer.from(name, 'hex');
  return Buffer.concat([bytes.subarray(2 * HASH_BYTES), bytes.subarray(0, 2 * HASH_BYTES)]);
}

/** An object, whole; null where there is none. */
export async function bytesOf(store: ObjectStore, key: string, version?: string): Promise<Buffer | null> {
  try {
    const chunks = await Array.fromAsync(store.get(key, version === undefined ? {} : { version }));
    return Buffer.concat(chunks);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    if (error.fault === 'missing') return version === undefined ? null : CHANGED;
    if (error.fault === 'changed' && version !== undefined) return CHANGED;
    throw error;
  }
}

/** Whether another version was there by the time it was read. */
export function isChanged(bytes: Buffer | null): boolean {
  return bytes === CHANGED;
}
