import { MillraceError } from '../core/errors.ts';
import { StorageError, type ObjectStore } from '../core/storage.ts';
import { membersIn } from '../lib/parsed.ts';
import { bytesOf, isChanged } from './key-place.ts';

const OBJECT = 'destroyed';
/** Ids in the list: whoever looks at it within a lease finds all that are new. */
const MOST = 2000;
const TRIES = 50;

interface List {
  /** Ids that were ever listed. */
  readonly count: number;
  /** The last of them, in order. */
  readonly last: readonly string[];
}

/** The ids of keys that were destroyed, in one object that every process looks at again and again. */
export class DestroyedKeys {
  readonly #store: ObjectStore;
  /** Those that were destroyed since this process began to look. */
  readonly #ids = new Set<string>();
  #version: string | null = null;
  #count: number | null = null;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Ids that were ever listed, as of the last look. */
  get count(): number {
    return this.#count ?? 0;
  }

  add(id: string): void {
    this.#ids.add(id);
  }

  /** Looks what is new. @returns false when more has gone by than the list has, or it is not the one of before */
  async look(): Promise<boolean> {
    const there = await this.#store.head(OBJECT);
    if (there?.version === this.#version) return true;
    const bytes = there === null ? null : await bytesOf(this.#store, OBJECT, there.version);
    if (isChanged(bytes)) return this.look();
    const { count, last } = this.#listIn(bytes);
    const before = this.#count ?? count;
    this.#version = there?.version ?? null;
    this.#count = count;
    for (const id of last) this.#ids.add(id);
    return count >= before && count - before <= last.length;
  }

  /**
   * Tells everybody, those who have been told before included.
   * @param least ids that are known to have been listed
   * @returns how many were ever listed
   */
  async publish(ids: readonly string[], least = 0): Promise<number> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const there = await this.#store.head(OBJECT);
      const bytes = there === null ? null : await bytesOf(this.#store, OBJECT, there.version);
      if (isChanged(bytes)) continue;
      const { count, last } = this.#listIn(bytes);
      const fresh = ids.filter((id) => !last.includes(id));
      if (fresh.length === 0 && count >= least) return count;
      const list: List = {
        count: Math.max(count + fresh.length, least),
        last: [...last, ...fresh].slice(-MOST),
      };
      const body = { bytes: Buffer.from(`${JSON.stringify(list)}\n`) };
      const put =
        there === null
          ? await this.#store.putIfAbsent(OBJECT, body)
          : await this.#store.putIfMatch(OBJECT, there.version, body);
      if (put.status === 'written') return list.count;
    }
    throw new StorageError('busy', `${this.#store.url}/${OBJECT}: others replace it again and again`);
  }

  #listIn(bytes: Buffer | null): List {
    if (bytes === null) return { count: 0, last: [] };
    const { count, last } = membersIn(bytes.toString());
    if (Number.isSafeInteger(count) && Array.isArray(last))
      return { count: Number(count), last: last.map(String) };
    throw new MillraceError('keys_unusable', `${this.#store.url}/${OBJECT} is damaged`);
  }
}
