import { MillraceError } from '../core/errors.ts';
import type { DestroyedKeys } from './destroyed-keys.ts';
import type { KeyPlace, Owned } from './key-place.ts';

/** What is said of a place of keys where its records lie, so that it is told from another one, and from an older copy. */
export interface KeyNote {
  /** Id of the place. */
  readonly place: string;
  /** Where it lay then; without credentials. */
  readonly url: string;
  /** How many destroyed keys its list had had by then. */
  readonly listed: number;
  readonly destroyed: readonly NamedKey[];
  /** Made with the place's keys over the rest. */
  readonly mac: string;
}

/** Name of an owner's object, and id of a key that is or was in it. */
export type NamedKey = readonly [name: string, id: string];

/** Where notes lie: nothing can be taken out, and everybody reads them in the same order. */
export interface KeyNotes {
  /** For errors. */
  readonly where: string;
  /** Those that came since it was asked last. */
  read(): Promise<readonly KeyNote[]>;
  write(note: KeyNote): Promise<void>;
  /** The keys that some of the newest sealed records name. */
  newest(): Promise<readonly NamedKey[]>;
  /** Whoever asks is not to wait any longer: they stop. */
  end(): void;
}

/** Keys in one note, so that the smallest record takes it. */
const PAGE = 200;
/** Keys that a start looks for in the place. */
const LOOKED_FOR = 64;

/**
 * Compares a place of keys with what is noted beside the records that it seals. The first note says which place it is, for
 * everybody and for good: of two that are noted at once, all find the same one first. Each erasure notes what it destroyed.
 */
export class PlaceWitness {
  readonly #place: KeyPlace;
  readonly #notes: KeyNotes;
  readonly #onDestroyed: (id: string) => void;
  #first: KeyNote | null = null;
  /** Names by id, in the order in which they were noted. */
  readonly #destroyed = new Map<string, string>();
  #listed = 0;

  constructor(place: KeyPlace, notes: KeyNotes, onDestroyed: (id: string) => void = () => undefined) {
    this.#place = place;
    this.#notes = notes;
    this.#onDestroyed = onDestroyed;
  }

  /** How many destroyed keys the list has at least. */
  get listed(): number {
    return this.#listed;
  }

  /** @throws MillraceError keys_elsewhere, keys_stale */
  async begin(): Promise<void> {
    await this.tie();
    await this.#checkDestroyed();
  }

  /** Notes which place it is where that is not noted yet. @throws MillraceError keys_elsewhere, keys_stale */
  async tie(): Promise<void> {
    await this.look();
    // Of two places that are noted at once all find the same one first.
    this.#checkPlace();
    await this.#checkNewest();
    if (this.#first !== null) return;
    await this.#write([], 0);
    await this.look();
    if (this.#first === null)
      throw new MillraceError(
        'journal_unreadable',
        `${this.#notes.where} does not have what was written to it`,
      );
    this.#checkPlace();
  }

  /** Destroys again what is noted as destroyed, in an older copy. @returns how many keys. @throws MillraceError keys_elsewhere */
  async catchUp(list: DestroyedKeys): Promise<number> {
    await this.look();
    this.#checkPlace();
    const again: string[] = [];
    for (const [id, name] of this.#destroyed) {
      if ((await this.#place.read(name)).id !== id) continue;
      await this.#place.destroy(name);
      again.push(id);
    }
    await list.publish(again, this.#listed);
    return again.length;
  }

  /** Reads what is new. */
  async look(): Promise<void> {
    for (const note of await this.#notes.read()) {
      this.#first ??= note;
      // Whoever can write there could else make everybody pass over what is sealed.
      if (note.place !== this.#place.id || note.mac !== this.#macOf(note)) continue;
      this.#listed = Math.max(this.#listed, note.listed);
      for (const [name, id] of note.destroyed) {
        this.#destroyed.set(id, name);
        this.#onDestroyed(id);
      }
    }
  }

  /** Once their marks are in the place, and they are listed there. @param listed keys that the list has had */
  async note(keys: readonly NamedKey[], listed: number): Promise<void> {
    await this.look();
    const fresh = keys.filter(([, id]) => !this.#destroyed.has(id));
    for (let from = 0; from < fresh.length; from += PAGE)
      await this.#write(fresh.slice(from, from + PAGE), listed);
    await this.look();
  }

  /** @param least keys that the list had when somebody looked before. @throws MillraceError keys_stale */
  checkList(count: number, least: number): void {
    if (count < least)
      throw this.stale(
        `its list has had ${count} destroyed keys, and had ${least}: an older copy was restored`,
      );
    this.#listed = Math.max(this.#listed, count);
  }

  stale(why: string): MillraceError {
    return new MillraceError(
      'keys_stale',
      `journal.encrypt.store: ${this.#place.url}: ${why}. \`millrace keys catch-up --config FILE\` destroys again what was destroyed; keys that are missing are only in a newer copy`,
    );
  }

  #checkPlace(): void {
    const { id, url } = this.#place;
    if (this.#first === null || this.#first.place === id) return;
    throw new MillraceError(
      'keys_elsewhere',
      `journal.encrypt.store: ${url} is place ${id}, and ${said(this.#notes, this.#first)}: set journal.encrypt.store to where that is now, or give this one topics of its own`,
    );
  }

  async #checkNewest(): Promise<void> {
    for (const [name, id] of (await this.#notes.newest()).slice(-LOOKED_FOR)) {
      const owned = await this.#ownedBy(name);
      if (owned !== null && owned.id !== id && !owned.destroyed.includes(id))
        throw this.stale(
          `it has no key ${id}, nor the mark of its destruction, and one of the newest events is sealed with it: it is another place, or an older copy of the right one`,
        );
    }
  }

  async #checkDestroyed(): Promise<void> {
    for (const [id, name] of [...this.#destroyed].slice(-LOOKED_FOR)) {
      const owned = await this.#ownedBy(name);
      if (owned?.id === id)
        throw this.stale(`it has key ${id}, which was destroyed: an older copy was restored`);
    }
  }

  /** Null for what is damaged: its records are found when they are read, and are no reason not to start. */
  async #ownedBy(name: string): Promise<Owned | null> {
    try {
      return await this.#place.read(name);
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'keys_unusable') return null;
      throw error;
    }
  }

  async #write(destroyed: readonly NamedKey[], listed: number): Promise<void> {
    const { id: place, url } = this.#place;
    const note = { place, url, listed, destroyed };
    await this.#notes.write({ ...note, mac: this.#macOf(note) });
  }

  #macOf({ place, url, listed, destroyed }: Omit<KeyNote, 'mac'>): string {
    return this.#place.vouch(JSON.stringify([place, url, listed, destroyed]));
  }
}

/** What a note says, for errors. */
export function said({ where }: Pick<KeyNotes, 'where'>, { place, url }: KeyNote): string {
  return `${where} says that events are sealed with the keys of place ${place}, which was ${url}`;
}
