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

/** Milliseconds between two looks at a list that other processes add to. */
const LOOK_EVERY = 50;
/** Milliseconds after which every process that follows a list has seen an addition. */
export const NOTICED_WITHIN = 1000;

/** Users whose data was erased and whose events are dropped until that is lifted. On disk are keyed hashes of their ids. */
export class ErasedUsers {
  readonly #folder: string;
  #key: KeyObject | null = null;
  #quick: HalfSip | null = null;
  readonly #blocked = new Map<string, Entry>();
  /** Kinds of subjects on the list, so that a look-up hashes for these only. */
  readonly #kinds = new Set<string>();
  readonly #tags = new Set<number>();
  readonly #ofNoTeam = new Set<string>();
  /** Stamp of the list when it was read. */
  #seen = '';
  /** SHA-256 of the list that was read last. */
  digest = '';
  /** Lines of the list, whose number only grows. */
  lines = 0;
  /** Counts the times that `reload` has read the list, or this process has added to it. */
  #turns = 0;
  #looking: Promise<void> | null = null;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads the list of an erasure folder; makes nothing.
   * @throws MillraceError erasure_unreadable
   */
  static open(folder: string): ErasedUsers {
    const users = new ErasedUsers(folder);
    users.reload();
    return users;
  }

  /** Reads the list again if it has changed. @returns whether it has @throws MillraceError erasure_unreadable */
  refresh(): boolean {
    if (stampOf(this.#folder) === this.#seen) return false;
    this.reload();
    return true;
  }

  /** True while no user is on the list. */
  get isEmpty(): boolean {
    return this.#blocked.size === 0;
  }

  /** Reads the list again whenever another process adds to it. @returns a function that stops that */
  follow(): () => void {
    const end = new AbortController();
    void this.#follow(end.signal);
    return () => end.abort();
  }

  /**
   * Reads the list again if it has changed, and does not block the process when the folder does not answer. One look at a time:
   * each that hangs takes one of the few threads that files are read with.
   * @throws MillraceError erasure_unreadable
   */
  look(): Promise<void> {
    return (this.#looking ??= this.#look().finally(() => (this.#looking = null)));
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // `RunningErasures` reports why a look fails, every minute.
      await this.look().catch(() => undefined);
      await wait(LOOK_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const turn = this.#turns;
    try {
      const list = await readListAside(this.#folder, this.#seen);
      // Without additions of this process since: the next look reads these.
      if (list !== null && turn === this.#turns) this.#replace(list);
    } catch (error) {
      if (this.#seen !== '' || !isMissing(error)) this.#fail(error);
    }
  }

  /** Reads the list again. @throws MillraceError erasure_unreadable */
  reload(): void {
    this.#turns += 1;
    try {
      const list = readList(this.#folder);
      // A list is never removed: it is out of reach.
      if (list.stamp === '' && this.#seen !== '') throw new Error('the list of erased users is gone');
      this.#replace(list);
    } catch (error) {
      this.#fail(error);
    }
  }

  #replace({ entries, key, stamp, digest }: ErasedList): void {
    this.#seen = stamp;
    this.digest = digest;
    this.lines = entries.length;
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
   * Whether an event belongs to an erased user: a hash or two, 3 µs each, once the list has users. An event that names no user is
   * searched for ids, as an erasure does.
   * @param malformed true when the user in the envelope is not an id
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

  /** For the ingest. */
  readonly isErased: IsErased = (event, reasons) =>
    this.has(event, reasons?.some(({ code }) => code === USER_MALFORMED) === true);

  /** @throws MillraceError erasure_unreadable before the first user: there is no key */
  hashOf({ by, id, team }: Omit<Subject, 'request'>): string {
    return this.#hash([by, canonicalId(id), team === null ? '' : canonicalId(team)]);
  }

  /** Drops the subject's events from now on; durable once it resolves. */
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

  /** Accepts the subject's events again. @returns false when it was not on the list */
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
    // An event without a team matches every team.
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
    this.lines += 1;
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
