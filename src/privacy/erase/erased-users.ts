import { createHmac, type Hmac, type KeyObject } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { wordsOf, type ErasedUser, type Ownership, type Said, type Subject } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { USER_MALFORMED, type IsErased } from '../../core/ingest.ts';
import { canonicalId, namedIds } from '../../core/named-ids.ts';
import { isMissing } from '../../lib/durable.ts';
import { HalfSip } from '../../lib/half-sip.ts';
import {
  addToList,
  KEYLESS,
  makeKey,
  readList,
  readListAside,
  stampOf,
  type Entry,
  type ErasedList,
} from './erased-list.ts';

/** Milliseconds between two looks at a list that others add to. */
const LOOK_EVERY = 50;
/** Milliseconds in which whoever follows a list has seen what was added to it: many looks. */
export const NOTICED_WITHIN = 1000;

/**
 * Users whose data is gone and whose events are dropped, for good or until it is lifted. On disk stand only keyed hashes of
 * their ids; the random key lies beside them, so a list without its key tells nobody whether a user is on it.
 */
export class ErasedUsers {
  readonly #folder: string;
  #key: KeyObject | null = null;
  #quick: HalfSip | null = null;
  readonly #blocked = new Map<string, Entry>();
  /** Kinds of subjects on the list: hashing is the only cost of a look-up. */
  readonly #kinds = new Set<string>();
  readonly #tags = new Set<number>();
  readonly #ofNoTeam = new Set<string>();
  /** Stamp of the list when it was read. */
  #seen = '';
  #digest = '';
  #lines = 0;
  /** How often this process itself has read the list, or added to it. */
  #turns = 0;
  #looking: Promise<void> | null = null;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads the list of an erasure folder; makes nothing, for most never erase.
   * @throws MillraceError erasure_unreadable
   */
  static open(folder: string): ErasedUsers {
    const users = new ErasedUsers(folder);
    users.reload();
    return users;
  }

  /** Reads the list again if it has changed since, and says whether it has. @throws MillraceError erasure_unreadable */
  refresh(): boolean {
    if (stampOf(this.#folder) === this.#seen) return false;
    this.reload();
    return true;
  }

  /** True while nobody is on the list. */
  get isEmpty(): boolean {
    return this.#blocked.size === 0;
  }

  /** Lines of the list, which only grows. */
  get lines(): number {
    return this.#lines;
  }

  /** Which list was read last: the same for whoever has read the same. */
  get digest(): string {
    return this.#digest;
  }

  /** From now on whom other processes add counts within moments: several share the folder while they run. @returns ends that */
  follow(): () => void {
    const end = new AbortController();
    void this.#follow(end.signal);
    return () => end.abort();
  }

  /**
   * Reads the list again if it has changed since, and nobody but who asked waits for a folder that does not answer. One look
   * at a time, however many ask: each that hangs takes one of the few threads that files are read with.
   * @throws MillraceError erasure_unreadable
   */
  look(): Promise<void> {
    return (this.#looking ??= this.#look().finally(() => (this.#looking = null)));
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // The look that comes every minute says why it cannot.
      await this.look().catch(() => undefined);
      await wait(LOOK_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const turn = this.#turns;
    try {
      const list = await readListAside(this.#folder, this.#seen);
      // What this process has added meanwhile may not be in it: the next look reads it.
      if (list !== null && turn === this.#turns) this.#replace(list);
    } catch (error) {
      if (this.#seen !== '' || !isMissing(error)) this.#fail(error);
    }
  }

  /** Reads the list again: another process may have added to it. */
  reload(): void {
    this.#turns += 1;
    try {
      const list = readList(this.#folder);
      // Out of reach: nobody takes a list away, and that must take nobody off it.
      if (list.stamp === '' && this.#seen !== '') throw new Error('the list of erased users is gone');
      this.#replace(list);
    } catch (error) {
      this.#fail(error);
    }
  }

  #replace({ entries, key, stamp, digest }: ErasedList): void {
    this.#seen = stamp;
    this.#digest = digest;
    this.#lines = entries.length;
    this.#key = key;
    this.#quick = null;
    this.#blocked.clear();
    for (const entry of entries) this.#take(entry);
    this.#index();
  }

  #fail(error: unknown): never {
    throw new MillraceError('erasure_unreadable', `${this.#folder}: ${messageOf(error)}`, { cause: error });
  }

  /**
   * Whether an event is of an erased user. Costs nothing while nobody is, else a hash or two, 3 µs each; only an event that
   * names no user is looked through for the ids in it, as an erasure does.
   * @param malformed what stands as its user is no id, and so no other user's
   */
  has(event: Ownership & Partial<Said>, malformed = false): boolean {
    if (this.isEmpty) return false;
    const { team, user, clientUser, id, headers, body } = event;
    if (
      this.#isBlocked('user', user, team) ||
      (this.#kinds.has('client_user') && this.#isBlocked('client_user', clientUser, team))
    )
      return true;
    if ((user !== null && !malformed) || id === undefined || headers === undefined || body === undefined)
      return false;
    return this.#isNamed(wordsOf({ id, headers, body }), team);
  }

  /** As the ways in ask it. */
  readonly isErased: IsErased = (event, reasons) =>
    this.has(event, reasons?.some(({ code }) => code === USER_MALFORMED) === true);

  /** Only once there is a key: a list with a user on it has one. */
  hashOf({ by, id, team }: Omit<Subject, 'request'>): string {
    return this.#hash([by, canonicalId(id), team === null ? '' : canonicalId(team)]);
  }

  /** From now on, and durably, the subject's events are dropped. */
  async block(subject: Subject, at: string): Promise<void> {
    this.#key ??= await makeKey(this.#folder);
    const hash = this.hashOf(subject);
    if (this.#blocked.has(hash)) return;
    const { by, id, team } = subject;
    const ofNoTeam = team === null ? {} : { of_no_team: this.#hashOfNoTeam(by, id) };
    await this.#append({
      hash,
      by,
      scoped: team !== null,
      at,
      tag: this.#tagOf(canonicalId(id)),
      ...ofNoTeam,
    });
  }

  /** Takes the subject's events again; false when it was not on the list. */
  async lift(subject: Omit<Subject, 'request'>, at: string): Promise<boolean> {
    if (this.#key === null) return false;
    const hash = this.hashOf(subject);
    const known = this.#blocked.get(hash);
    if (known === undefined) return false;
    await this.#append({ ...known, at, lifted: true });
    return true;
  }

  list(): readonly ErasedUser[] {
    return Array.from(this.#blocked.values(), ({ hash, by, scoped, at }) => ({ hash, by, scoped, at }));
  }

  #isBlocked(by: Subject['by'], id: string | null, team: string | null): boolean {
    if (id === null) return false;
    if (this.#blocked.has(this.hashOf({ by, id, team: null }))) return true;
    if (!this.#kinds.has('scoped')) return false;
    // What names no team is of any.
    return team === null
      ? this.#ofNoTeam.has(this.#hashOfNoTeam(by, id))
      : this.#blocked.has(this.hashOf({ by, id, team }));
  }

  #isNamed(words: Buffer, team: string | null): boolean {
    for (const id of namedIds(words)) {
      if (!this.#tags.has(this.#tagOf(id))) continue;
      if (this.#isBlocked('user', id, team) || this.#isBlocked('client_user', id, team)) return true;
    }
    return false;
  }

  #hashOfNoTeam(by: Subject['by'], id: string): string {
    return this.#hash([by, canonicalId(id), '', 'of no team']);
  }

  #hash(parts: readonly string[]): string {
    return this.#hmac().update(JSON.stringify(parts)).digest('hex');
  }

  /** @param id canonical */
  #tagOf(id: string): number {
    this.#quick ??= new HalfSip(this.#hmac().update('tags').digest());
    return this.#quick.ofText(id);
  }

  #hmac(): Hmac {
    if (this.#key === null) throw new MillraceError('erasure_unreadable', `${this.#folder} ${KEYLESS}`);
    return createHmac('sha256', this.#key);
  }

  async #append(entry: Entry): Promise<void> {
    await addToList(this.#folder, entry);
    this.#turns += 1;
    this.#lines += 1;
    this.#take(entry);
    this.#index();
  }

  #take(entry: Entry): void {
    if (entry.lifted === true) this.#blocked.delete(entry.hash);
    else this.#blocked.set(entry.hash, entry);
  }

  #index(): void {
    for (const index of [this.#kinds, this.#tags, this.#ofNoTeam]) index.clear();
    for (const { by, scoped, tag, of_no_team: ofNoTeam } of this.#blocked.values()) {
      this.#kinds.add(by);
      if (scoped) this.#kinds.add('scoped');
      this.#tags.add(tag);
      if (ofNoTeam !== undefined) this.#ofNoTeam.add(ofNoTeam);
    }
  }
}
