import { keyProblem } from '../core/place.ts';
import {
  type GetOptions,
  isKept,
  type ObjectBody,
  type ObjectStore,
  StorageError,
  type StoredObject,
} from '../core/storage.ts';
import { messageOf } from '../core/errors.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import { attempt, type Patience, readObject } from './attempts.ts';
import { BodyReader, factsOf, writeParts } from './body.ts';
import {
  type Condition,
  type Driver,
  type Facts,
  type Found,
  isUnmet,
  type Page,
  type Upload,
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
 * Key of the object that probes put, and that stays: removing it takes a right that a receiver does not need, and in a bucket with
 * versions each start would leave one. No listing shows it.
 */
const PROBE = '_probe';
/** Times that a write is begun anew because what it found or had uploaded was gone. */
const BEGINNINGS = 4;
/** Times that a purge looks again at what is left. */
const ROUNDS = 5;

/** The port, on any vendor's driver. */
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
    const found = await this.#find(this.#full(key), signal);
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
    let after: string | null = null;
    do {
      const from: string | null = after;
      const page: Page = await this.#asking(prefix, signal, (each) =>
        this.#driver.page(`${this.#options.prefix}${prefix}`, from, each),
      );
      for (const object of page.objects) {
        const key = object.key.slice(this.#options.prefix.length);
        // Consoles make empty objects such as `a/` to show a folder.
        if (keyProblem(key) === null && key !== PROBE) yield { ...object, key };
      }
      after = page.next;
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
      // Not all stores heed the condition of a removal, so it is looked at before, too.
      const found = await this.#find(full, signal);
      if (found === null) return 'removed';
      if (found.version !== version) return 'changed';
    }
    try {
      await this.#asking(key, signal, (each) => this.#driver.remove(full, version ?? null, each));
      return 'removed';
    } catch (error) {
      const fault = error instanceof StorageError ? error.fault : null;
      if (fault === 'missing') return 'removed';
      if (fault !== 'changed') throw error;
      // What was removed by an attempt whose answer was lost has no version any more.
      return (await this.#find(full, signal)) === null ? 'removed' : 'changed';
    }
  };

  readonly purge: ObjectStore['purge'] = async (key, signal) => {
    const full = this.#full(key);
    let removed = 0;
    for (let round = 1; ; round += 1) {
      const remains = await this.#asking(key, signal, (each) => this.#driver.remains(full, each));
      // It says that they are removed, and has them again each time.
      if (round > ROUNDS) return { removed, kept: remains.map(({ name }) => `${name}: stays`) };
      const kept: string[] = [];
      let gone = 0;
      for (const { name, isMarker, remove } of remains) {
        if (isMarker === true && kept.length > 0) continue;
        try {
          await this.#asking(key, signal, remove);
          gone += 1;
        } catch (error) {
          if (signal?.aborted === true) throw error;
          kept.push(`${name}: ${messageOf(error)}`);
        }
      }
      removed += gone;
      // What was removed can be kept as soft-deleted from then on, so it is looked for again.
      if (gone === 0) return { removed, kept };
    }
  };

  readonly probe: ObjectStore['probe'] = async (signal) => {
    await this.#asking('', signal, (each) => this.#driver.page(this.#options.prefix, null, each));
    // Of two writes of a key where nothing may be, one at least finds something; and no object ever has that version.
    const absent = { version: null };
    const heedsAbsence = (await this.#refuses(absent, signal)) || (await this.#refuses(absent, signal));
    if (!heedsAbsence) throw this.#heedless('If-None-Match');
    if (!(await this.#refuses({ version: this.#driver.noVersion }, signal))) throw this.#heedless('If-Match');
  };

  async #refuses(condition: Condition, signal: AbortSignal | undefined): Promise<boolean> {
    const bytes = Buffer.from('millrace\n');
    const whole = { bytes, ...factsOf({ bytes }) };
    try {
      await this.#asking('', signal, (each) => this.#driver.put(this.#full(PROBE), whole, condition, each));
      return false;
    } catch (error) {
      if (isKept(error) || isUnmet(condition, error)) return true;
      throw error;
    }
  }

  #heedless(condition: string): StorageError {
    return new StorageError(
      'invalid',
      `${this.url}: the store does not heed ${condition}, so what is there could be overwritten; it cannot be used`,
    );
  }

  close(): Promise<void> {
    this.#driver.close();
    return Promise.resolve();
  }

  /** @returns the version; null when the condition does not hold, and what is there is not what was to be written */
  async #write(
    key: string,
    body: ObjectBody,
    condition: Condition,
    signal: AbortSignal | undefined,
  ): Promise<string | null> {
    const full = this.#full(key);
    const facts = factsOf(body);
    const reader = await BodyReader.open(body);
    try {
      for (let beginning = 1; ; beginning += 1) {
        let isRefused = true;
        try {
          return await this.#tryWrite(key, reader, facts, { condition, signal });
        } catch (error) {
          isRefused = !(error instanceof UploadGone);
          const isThere = isUnmet(condition, error) || (condition.version === null && isKept(error));
          if (isRefused && !isThere) throw error;
        }
        // It may be here by an attempt whose answer was lost, in this process or in one that was killed.
        const there = await this.#find(full, signal);
        if (there !== null && (await this.#holds(there, facts, signal))) return there.version;
        if (isRefused && (there !== null || condition.version !== null)) return null;
        if (beginning >= BEGINNINGS)
          throw new StorageError('unreachable', `${this.#name(key)}: uploads of it keep being removed`);
      }
    } finally {
      await reader.close();
    }
  }

  async #tryWrite(
    key: string,
    reader: BodyReader,
    facts: Facts,
    { condition, signal }: { condition: Condition; signal: AbortSignal | undefined },
  ): Promise<string> {
    const full = this.#full(key);
    const { partBytes } = this.#options;
    const asking = <T>(request: (each: AbortSignal) => Promise<T>): Promise<T> =>
      this.#asking(key, signal, request);
    if (facts.size <= partBytes) {
      const all = { offset: 0, length: facts.size, most: partBytes };
      return reader.with(all, (bytes, tried) =>
        asking((each) => {
          tried();
          return this.#driver.put(full, { ...facts, bytes }, condition, each);
        }),
      );
    }
    const upload = await asking((each) => this.#driver.upload(full, facts, condition, each));
    try {
      return await writeParts(upload, reader, { size: facts.size, partBytes, attempt: asking });
    } catch (error) {
      await this.#abandon(upload);
      throw error;
    }
  }

  /** Best effort: what stays is a matter of the bucket's lifecycle rule for incomplete uploads. */
  async #abandon(upload: Upload): Promise<void> {
    await attempt(
      this.#options,
      (error) => this.#driver.faultOf(error),
      undefined,
      (each) => upload.abandon(each),
    ).catch(() => undefined);
  }

  #find(full: string, signal: AbortSignal | undefined): Promise<Found | null> {
    return this.#asking(full.slice(this.#options.prefix.length), signal, (each) =>
      this.#driver.head(full, each),
    );
  }

  async #holds(found: Found, { size, sha256 }: Facts, signal: AbortSignal | undefined): Promise<boolean> {
    if (found.bytes !== size) return false;
    if (found.sha256 !== null) return found.sha256 === sha256;
    const options = { version: found.version, ...(signal === undefined ? {} : { signal }) };
    const chunks = readObject(this.#driver, this.#options, found.key, options);
    return (await hashChunks(chunks)).sha256 === sha256;
  }

  async #asking<T>(
    key: string,
    signal: AbortSignal | undefined,
    request: (each: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await attempt(this.#options, (error) => this.#driver.faultOf(error), signal, request);
    } catch (error) {
      throw this.#about(key, error);
    }
  }

  /** The same error, saying what it is about. */
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

  #full(key: string): string {
    const full = `${this.#options.prefix}${key}`;
    const problem = keyProblem(key) ?? keyProblem(full);
    if (problem !== null) throw new StorageError('invalid', `${JSON.stringify(key)} ${problem}`);
    return full;
  }
}
