import { messageOf } from '../core/errors.ts';
import { keyProblem } from '../core/place.ts';
import {
  type GetOptions,
  type ObjectBody,
  type ObjectStore,
  StorageError,
  type StoredObject,
} from '../core/storage.ts';
import { NEVER } from '../lib/abort.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import { attempt, type Patience, readObject } from './attempts.ts';
import { type Attempt, BodyReader, factsOf, writeParts } from './body.ts';
import {
  type BodyFacts,
  type Condition,
  type Driver,
  type FoundObject,
  isUnmet,
  type Page,
  UploadGone,
} from './driver.ts';

export interface RemoteOptions extends Patience {
  readonly url: string;
  /** Of all keys; empty, or it ends with `/`. */
  readonly prefix: string;
  /** Objects larger than this are uploaded in parts of this size. */
  readonly partBytes: number;
}

/**
 * Key of the object that probes put. It stays: removing it takes a right that a receiver does not need, and would leave a version
 * at each start. No listing shows it.
 */
const PROBE = '_probe';
/** Times that a write is begun, when what it found or uploaded was removed. */
const MOST_BEGINNINGS = 4;
/** Rounds of a purge. */
const MOST_ROUNDS = 5;

/** The contract of storage, on any vendor's driver. */
export class RemoteStore implements ObjectStore {
  readonly url: string;
  readonly #driver: Driver;
  readonly #options: RemoteOptions;

  constructor(driver: Driver, options: RemoteOptions) {
    this.url = options.url;
    this.#driver = driver;
    this.#options = options;
  }

  readonly head: ObjectStore['head'] = async (key, signal) => {
    const found = await this.#find(key, signal);
    if (found === null) return null;
    const { bytes, version, modifiedAt } = found;
    return { key, bytes, version, modifiedAt };
  };

  async *get(key: string, options: GetOptions = {}): AsyncGenerator<Buffer> {
    try {
      yield* readObject(this.#driver, this.#options, this.#full(key), options);
    } catch (error) {
      throw this.#about(key, error);
    }
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncGenerator<StoredObject> {
    const { length } = this.#options.prefix;
    const all = `${this.#options.prefix}${prefix}`;
    let after: string | null = null;
    do {
      const from: string | null = after;
      const ask = (each: AbortSignal): Promise<Page> => this.#driver.page(all, from, each);
      const { objects, next }: Page = await this.#attempt(prefix, signal, ask);
      for (const object of objects) {
        const key = object.key.slice(length);
        // Consoles make empty objects such as `a/` to show a folder.
        if (keyProblem(key) === null && key !== PROBE) yield { ...object, key };
      }
      after = next;
    } while (after !== null);
  }

  readonly putIfAbsent: ObjectStore['putIfAbsent'] = async (key, body, signal) => {
    const version = await this.#write(key, body, { version: null }, signal);
    return version === null ? { status: 'taken' } : { status: 'written', version };
  };

  readonly putIfMatch: ObjectStore['putIfMatch'] = async (key, version, body, signal) => {
    const written = await this.#write(key, body, { version }, signal);
    return written === null ? { status: 'changed' } : { status: 'written', version: written };
  };

  readonly delete: ObjectStore['delete'] = async (key, version, signal) => {
    const full = this.#full(key);
    if (version !== undefined) {
      // Not all stores heed the condition of a removal, so it is checked before, too.
      const found = await this.#find(key, signal);
      if (found === null) return 'removed';
      if (found.version !== version) return 'changed';
    }
    try {
      await this.#attempt(key, signal, (each) => this.#driver.remove(full, version ?? null, each));
      return 'removed';
    } catch (error) {
      const fault = error instanceof StorageError ? error.fault : null;
      if (fault === 'missing') return 'removed';
      if (fault !== 'changed') throw error;
      // An attempt whose answer was lost may have removed it.
      return (await this.#find(key, signal)) === null ? 'removed' : 'changed';
    }
  };

  readonly purge: ObjectStore['purge'] = async (key, signal) => {
    const full = this.#full(key);
    let removed = 0;
    for (let round = 1; ; round += 1) {
      const remains = await this.#attempt(key, signal, (each) => this.#driver.remains(full, each));
      // The store answers that it removes them, and shows them each time.
      if (round > MOST_ROUNDS) return { removed, kept: remains.map(({ name }) => `${name}: stays`) };
      const kept: string[] = [];
      let gone = 0;
      for (const { name, isMarker, remove } of remains) {
        if (isMarker === true && kept.length > 0) continue;
        try {
          await this.#attempt(key, signal, remove);
          gone += 1;
        } catch (error) {
          if (signal?.aborted === true) throw error;
          kept.push(`${name}: ${messageOf(error)}`);
        }
      }
      removed += gone;
      // A removed version can be kept as a soft-deleted one, so it searches again.
      if (gone === 0) return { removed, kept };
    }
  };

  readonly probe: ObjectStore['probe'] = async (signal) => {
    await this.#attempt('', signal, (each) => this.#driver.page(this.#options.prefix, null, each));
    // The second of two writes where nothing may be finds the first; and no object ever has `noVersion`.
    const absent = { version: null };
    const heedsAbsence = (await this.#refuses(absent, signal)) || (await this.#refuses(absent, signal));
    if (!heedsAbsence) throw this.#heedless('If-None-Match');
    if (!(await this.#refuses({ version: this.#driver.noVersion }, signal))) throw this.#heedless('If-Match');
  };

  async #refuses(condition: Condition, signal: AbortSignal | undefined): Promise<boolean> {
    const bytes = Buffer.from('millrace\n');
    const body = { bytes, ...factsOf({ bytes }) };
    try {
      await this.#attempt('', signal, (each) => this.#driver.put(this.#full(PROBE), body, condition, each));
      return false;
    } catch (error) {
      if (isKept(error) || isUnmet(condition, error)) return true;
      throw error;
    }
  }

  #heedless(condition: string): StorageError {
    const what = `the store does not heed ${condition}, so what is there could be overwritten; it cannot be used`;
    return new StorageError('invalid', `${this.url}: ${what}`);
  }

  async close(): Promise<void> {
    this.#driver.close();
  }

  /** @returns the version; null when the condition does not hold, and another body is there */
  async #write(
    key: string,
    body: ObjectBody,
    condition: Condition,
    signal: AbortSignal | undefined,
  ): Promise<string | null> {
    const facts = factsOf(body);
    await using reader = await BodyReader.open(body);
    for (let beginning = 1; ; beginning += 1) {
      let isRefused = true;
      try {
        return await this.#tryWrite(key, reader, facts, condition, signal);
      } catch (error) {
        isRefused = !(error instanceof UploadGone);
        const isThere = isUnmet(condition, error) || (condition.version === null && isKept(error));
        if (isRefused && !isThere) throw error;
      }
      // An attempt whose answer was lost may have written it, also one of a process that was killed.
      const there = await this.#find(key, signal);
      if (there !== null && (await this.#holds(there, facts, signal))) return there.version;
      if (isRefused && (there !== null || condition.version !== null)) return null;
      if (beginning >= MOST_BEGINNINGS)
        throw new StorageError('unreachable', `${this.#name(key)}: uploads of it keep being removed`);
    }
  }

  async #tryWrite(
    key: string,
    reader: BodyReader,
    facts: BodyFacts,
    condition: Condition,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const full = this.#full(key);
    const { size } = facts;
    const { partBytes } = this.#options;
    const again: Attempt = (request) => this.#attempt(key, signal, request);
    if (size <= partBytes)
      return reader.with({ offset: 0, length: size, most: partBytes }, again, (bytes, each) =>
        this.#driver.put(full, { ...facts, bytes }, condition, each),
      );
    const upload = await again((each) => this.#driver.upload(full, facts, condition, each));
    try {
      return await writeParts(upload, reader, { size, partBytes, attempt: again });
    } catch (error) {
      // Otherwise the bucket's lifecycle rule for incomplete uploads removes the parts.
      await this.#attempt(key, undefined, (each) => upload.abandon(each)).catch(() => undefined);
      throw error;
    }
  }

  #find(key: string, signal: AbortSignal | undefined): Promise<FoundObject | null> {
    const full = this.#full(key);
    return this.#attempt(key, signal, (each) => this.#driver.head(full, each));
  }

  async #holds(
    found: FoundObject,
    { size, sha256 }: BodyFacts,
    signal: AbortSignal = NEVER,
  ): Promise<boolean> {
    if (found.bytes !== size) return false;
    if (found.sha256 !== null) return found.sha256 === sha256;
    const options = { version: found.version, signal };
    return (await hashChunks(readObject(this.#driver, this.#options, found.key, options))).sha256 === sha256;
  }

  async #attempt<T>(
    key: string,
    signal: AbortSignal = NEVER,
    request: (each: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await attempt(this.#options, (error) => this.#driver.faultOf(error), signal, request);
    } catch (error) {
      throw this.#about(key, error);
    }
  }

  /** The same error, with the name of the object. */
  #about(key: string, error: unknown): unknown {
    if (!(error instanceof StorageError) || error instanceof UploadGone) return error;
    const { fault, delayMs, message } = error;
    const name = this.#name(key);
    if (message.startsWith(name)) return error;
    const cause = error.cause ?? error;
    return new StorageError(fault, `${name}: ${message}`, delayMs === null ? { cause } : { cause, delayMs });
  }

  #name(key: string): string {
    return key === '' ? this.url : `${this.url}/${key}`;
  }

  /** The key with the prefix. @throws StorageError invalid */
  #full(key: string): string {
    const full = `${this.#options.prefix}${key}`;
    const problem = keyProblem(key) ?? keyProblem(full);
    if (problem !== null) throw new StorageError('invalid', `${JSON.stringify(key)} ${problem}`);
    return full;
  }
}

/** Whether what is there is neither replaced nor removed: by a lifecycle rule that has moved it, a policy or a hold. */
function isKept(error: unknown): boolean {
  return error instanceof StorageError && (error.fault === 'archived' || error.fault === 'immutable');
}
