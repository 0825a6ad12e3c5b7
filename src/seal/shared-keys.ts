import type { KeyObject } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Ownership, Subject } from '../core/erasure.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { SinkLog, SinkTrouble } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
import { getOrMakeAtMost } from '../lib/get-or-make.ts';
import { DestroyedKeys } from './destroyed-keys.ts';
import { KeyPlace, type Owned } from './key-place.ts';
import { PlaceWitness, type KeyNotes, type NamedKey } from './place-witness.ts';

/** Keys remembered; beyond, they are asked for again. */
const REMEMBERED = 20_000;
/** Looks within a lease. */
const LOOKS = 4;

/** Says which key it is. What is handed on with events has no key in it: sinks of the user's own get them. */
export interface KeyRef {
  /** Name of its object. */
  readonly name: string;
  /** 32 hex digits, random. */
  readonly id: string;
  /** How often it had lost track of what is destroyed when it was asked for. */
  readonly era: number;
}

export interface KeyUse extends KeyRef {
  readonly key: KeyObject;
  /** The owner had another one, which was destroyed. */
  readonly isLater: boolean;
}

export interface SharedKeysOptions {
  readonly store: ObjectStore;
  readonly master: Buffer;
  /** Milliseconds for which a key may be used without having looked whether it is destroyed. */
  readonly lease: number;
  /** Whether nothing can have been sealed yet, so that an empty place may be begun. */
  readonly isNew: () => Promise<boolean>;
  /** Which place it has to be, and what was destroyed there. */
  readonly notes: KeyNotes;
  readonly log: SinkLog;
}

/**
 * The keys of sealed records for the many processes of a fleet, in one place.
 *
 * A key is durable before anybody is handed it. Destroying one puts a mark in its place, then its id on the list that every
 * process looks at, then waits for a lease: by then each has looked, or does not use its keys until it has. So after an
 * erasure no process opens or seals anything with the key, one that was paused meanwhile included.
 */
export class SharedKeys {
  readonly #options: SharedKeysOptions;
  readonly #place: KeyPlace;
  readonly #destroyed: DestroyedKeys;
  readonly #witness: PlaceWitness;
  #witnessing: Promise<void> | null = null;
  /** By id, and the ids by name. */
  readonly #keys = new Map<string, KeyObject>();
  readonly #ids = new Map<string, string>();
  /** Names of which a key was destroyed. */
  readonly #later = new Set<string>();
  readonly #names = new Map<string, string>();
  /** What is asked for now, by name. */
  readonly #asked = new Map<string, Promise<Owned>>();
  #looking: Promise<void> | null = null;
  /** Monotonic time at which the last look began. */
  #lookedAt = -Infinity;
  #era = 0;
  readonly #timer: NodeJS.Timeout;
  /** Why the last look failed. */
  #failure: SinkTrouble | null = null;

  private constructor(options: SharedKeysOptions, place: KeyPlace) {
    this.#options = options;
    this.#place = place;
    this.#destroyed = new DestroyedKeys(options.store);
    this.#witness = new PlaceWitness(place, options.notes, (id) => this.#forget(id));
    this.#timer = setInterval(() => void this.#watch(), options.lease / LOOKS).unref();
  }

  /** @throws MillraceError master_key_wrong, keys_unusable, keys_elsewhere, keys_stale; StorageError */
  static async open(options: SharedKeysOptions): Promise<SharedKeys> {
    const keys = new SharedKeys(options, await KeyPlace.open(options.store, options.master, options.isNew));
    try {
      await keys.#witness.begin();
      await keys.#look();
    } catch (error) {
      await keys.close();
      throw error;
    }
    return keys;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#options.notes.end();
    await this.#looking?.catch(() => undefined);
    await this.#witnessing;
    await this.#options.store.close();
  }

  /** Why no key can be used now; null while they can. */
  get trouble(): SinkTrouble | null {
    return this.#isCurrent ? null : this.#failure;
  }

  /** The key of an owner, made where there is none. */
  async keyOf(owner: Ownership): Promise<KeyUse> {
    await this.#current();
    const name = this.#nameOf(owner);
    for (;;) {
      const id = this.#ids.get(name);
      const key = id === undefined ? undefined : this.#keys.get(id);
      if (id !== undefined && key !== undefined && !this.#destroyed.has(id))
        return this.#use(name, id, key, this.#era);
      await this.#ask(name, () => this.#place.make(name));
    }
  }

  /** The key that a record names; `destroyed` when that was done on purpose. @throws MillraceError keys_unusable */
  async find(name: string, id: string): Promise<KeyUse | 'destroyed'> {
    await this.#current();
    if (this.#destroyed.has(id)) return 'destroyed';
    const known = this.#keys.get(id);
    if (known !== undefined) return this.#use(name, id, known, this.#era);
    const era = this.#era;
    const found = await this.#ask(name, () => this.#place.read(name));
    if (this.#destroyed.has(id)) return 'destroyed';
    if (found.id === id && found.key !== null) return this.#use(name, id, found.key, era);
    await this.#place.check();
    // A key is durable before its first record is.
    throw new MillraceError(
      'keys_unusable',
      `${this.#options.store.url} has no key ${id}, nor the mark of its destruction: is it the place that the record was sealed from?`,
    );
  }

  /** `gone`: it is destroyed. `unsure`: nobody has looked for too long, and it must not be used. */
  stateOf({ id, era }: Pick<KeyRef, 'id' | 'era'>): 'good' | 'gone' | 'unsure' {
    if (this.#destroyed.has(id)) return 'gone';
    return this.#isCurrent && era === this.#era ? 'good' : 'unsure';
  }

  /** Whether a key is still there now, looked at within the lease. */
  async isGone(use: KeyRef): Promise<boolean> {
    await this.#current();
    if (this.stateOf(use) === 'unsure') return (await this.find(use.name, use.id)) === 'destroyed';
    return this.#destroyed.has(use.id);
  }

  /** Says of the name that a record has which requests own it. */
  owned(subjects: readonly Subject[]): (name: string) => readonly string[] {
    return this.#place.isOwned(subjects);
  }

  /**
   * Destroys every key of a subject.
   * @param before told how many there are before the first is touched, if there are any
   * @returns what the store still keeps of them by rules of its own
   */
  async destroy(
    subject: Subject,
    signal: AbortSignal,
    before: (keys: number) => Promise<void>,
    onStep: (step: string) => void = () => undefined,
  ): Promise<readonly string[]> {
    // Not in an older copy: the one that is in use would keep them.
    await this.#look();
    const names = await Array.fromAsync(this.#place.ownedBy(subject, signal));
    // That there are none must not be said of an empty folder.
    await this.#place.check();
    let active = 0;
    for (const name of names) if ((await this.#place.read(name)).key !== null) active += 1;
    if (active > 0) await before(active);
    const keys: NamedKey[] = [];
    const left: string[] = [];
    for (const name of names) {
      signal.throwIfAborted();
      const { owned, kept } = await this.#place.destroy(name);
      keys.push(...owned.destroyed.map((id) => [name, id] as const));
      left.push(...kept);
      onStep('key destroyed');
    }
    // Also those of before: who destroyed them may have been killed here.
    if (keys.length > 0) {
      const listed = await this.#destroyed.publish(keys.map(([, id]) => id));
      await this.#place.check();
      onStep('keys listed');
      await this.#witness.note(keys, listed);
    }
    await this.#place.check();
    await this.#look();
    onStep('keys noted');
    return left;
  }

  /** Until nobody uses what is on the list. */
  async settled(signal: AbortSignal): Promise<void> {
    await wait(this.#options.lease, undefined, { signal });
  }

  get #isCurrent(): boolean {
    return performance.now() - this.#lookedAt < this.#options.lease;
  }

  async #current(): Promise<void> {
    while (!this.#isCurrent) await this.#look();
  }

  async #watch(): Promise<void> {
    const { store, log } = this.#options;
    try {
      await this.#look();
      this.#failure = null;
    } catch (error) {
      const isStale = error instanceof MillraceError;
      const detail = messageOf(error);
      if (this.#failure?.detail === detail) return;
      this.#failure = { code: isStale ? error.code : 'keys_unreachable', detail, since: Date.now() };
      const what = isStale
        ? 'the keys of sealed events are not used'
        : 'the keys of sealed events cannot be reached';
      log.warn({ keys: store.url, error: detail }, what);
    }
  }

  #look(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  #use(name: string, id: string, key: KeyObject, era: number): KeyUse {
    return { name, id, key, era, isLater: this.#later.has(name) };
  }

  /** What others have noted counts at the next look: whatever keeps the notes may take longer than a lease to answer. */
  #hear(): void {
    this.#witnessing ??= this.#witness
      .look()
      .catch(() => undefined)
      .finally(() => {
        this.#witnessing = null;
      });
  }

  async #lookNow(): Promise<void> {
    const began = performance.now();
    const { listed } = this.#witness;
    this.#hear();
    if (!(await this.#destroyed.look())) {
      this.#era += 1;
      this.#keys.clear();
      this.#ids.clear();
    }
    for (const id of this.#keys.keys()) if (this.#destroyed.has(id)) this.#keys.delete(id);
    // After it: a list that is missing is one where nothing was destroyed.
    await this.#place.check();
    this.#witness.checkList(this.#destroyed.count, listed);
    this.#lookedAt = began;
  }

  #forget(id: string): void {
    this.#destroyed.add(id);
    this.#keys.delete(id);
  }

  async #ask(name: string, work: () => Promise<Owned>): Promise<Owned> {
    const era = this.#era;
    const asked = this.#asked.get(name) ?? work().finally(() => this.#asked.delete(name));
    this.#asked.set(name, asked);
    const owned = await asked;
    const { id, key, destroyed } = owned;
    for (const each of destroyed) this.#destroyed.add(each);
    if (destroyed.length > 0) this.#later.add(name);
    // It may have been destroyed since it was read. A mark stands there before anybody is told.
    if (id !== null && this.#destroyed.has(id) && (await this.#place.read(name)).id === id)
      throw this.#witness.stale(`it has key ${id}, which was destroyed: an older copy was restored`);
    if (id === null || key === null || era !== this.#era || this.#destroyed.has(id)) return owned;
    if (this.#keys.size >= REMEMBERED) {
      this.#keys.clear();
      this.#ids.clear();
    }
    this.#keys.set(id, key);
    this.#ids.set(name, id);
    return owned;
  }

  /** Three hashes each time would take as long as sealing. */
  #nameOf({ team, user, clientUser }: Ownership): string {
    const plain = JSON.stringify([team, user, clientUser]);
    const make = (): string => this.#place.nameOf({ team, user, clientUser });
    return getOrMakeAtMost(this.#names, plain, make, REMEMBERED);
  }
}
