import type Database from 'better-sqlite3';
import { digestOf } from './identity.ts';
import { digestIn, SealedIds, type Apply, type Known } from './sealed-ids.ts';
import { KEY_BYTES, NO_ID, type KnownBy } from './segments/format.ts';

/** Ids of a generation that is not full, cleared away at once. */
const EXPIRE_AT_ONCE = 5000;

/**
 * `new`: never seen within the window. `repeated`: the same id with the same bytes. `reused`: the id is known, with other
 * bytes; seen again with those, it is `repeated`.
 */
export type Seen = 'new' | 'repeated' | 'reused';

/**
 * The events seen within the dedup window, at a cost that does not grow with their number.
 *
 * A B-tree over random ids dirties one page an insert once it outgrows a few hundred pages (measured: the commit rate
 * halves at two million ids). So an id goes through three states instead: recent (in memory; on disk it stands in the
 * record of its event, or, without one, in a plain table) → sealing (a full generation, sorted, written a few rows at a
 * time between the commits) → sealed (sequential in one table; a Bloom filter in memory answers for it, the table confirms
 * a hit). Each id counts for the window and no longer; what is past it is cleared away by generations.
 */
export class SeenIds {
  readonly #db: Database.Database;
  readonly #insertRecent;
  readonly #deleteRecent;
  readonly #shortenRecent;
  readonly #upsertSavedUpTo;
  readonly #sealed: SealedIds;
  #recent = new Map<string, Known>();
  /** Added since the last commit, and of these, what has no record. */
  #added: string[] = [];
  #aside: string[] = [];
  /** Rows whose ids are known better by now. */
  #stale: number[] = [];
  /** Ids that came since the last step of sealing. */
  #came = 0;
  #nextRow = 1;
  #lastAt = 0;
  readonly #window: number;
  readonly #size: number;
  #savedUpTo: number;

  /**
   * @param window milliseconds an id is remembered
   * @param generationSize ids that a generation holds before it is sealed
   */
  constructor(db: Database.Database, window: number, generationSize: number) {
    this.#db = db;
    this.#window = window;
    this.#size = generationSize;
    this.#insertRecent = db.prepare('INSERT INTO recent_ids (n, hash, at) VALUES (?, ?, ?)');
    this.#deleteRecent = db.prepare('DELETE FROM recent_ids WHERE n = ?');
    this.#shortenRecent = db.prepare('UPDATE recent_ids SET hash = ? WHERE n = ?');
    this.#upsertSavedUpTo = db.prepare(
      `INSERT INTO checkpoints VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
       WHERE CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER)`,
    );
    this.#sealed = new SealedIds(db);
    const noted = db.prepare('SELECT value FROM checkpoints WHERE key = ?').pluck();
    this.#savedUpTo = Number(noted.get(SAVED_UP_TO) ?? 0);
    this.#load();
  }

  /** The newest event whose id, and those of all before it, need not be looked for in the segments. */
  get savedUpTo(): number {
    return this.#savedUpTo;
  }

  #load(): void {
    for (const row of this.#db.prepare('SELECT n, hash, at FROM recent_ids ORDER BY n').iterate()) {
      const { n, hash: entry, at } = row as { n: number; hash: Buffer; at: number };
      this.#note(entry.toString('latin1', 0, KEY_BYTES), { digest: digestIn(entry), at, seq: 0, row: n });
    }
  }

  /** Whether a generation is being written: `keep` would write all of the rest at once. */
  get isSealing(): boolean {
    return this.#sealed.isSealing;
  }

  /** An id as the record of its event has it. @param at since when it counts, milliseconds since the epoch */
  restore({ key, digest }: KnownBy, seq: number, at: number): void {
    this.#note(key, { digest: digest === NO_ID.digest ? null : digest, at, seq, row: 0 });
  }

  /**
   * What is not `repeated` is remembered, until `takeBack` or for good.
   * @param now milliseconds since the epoch
   * @param seq which its event gets if it is `new`; 0 for one that has no record
   */
  add({ key, digest }: KnownBy, now: number, seq: number): Seen {
    const known = this.#find(key, now);
    if (known === null) {
      this.#remember(key, { digest, at: now, seq, row: 0 });
      return 'new';
    }
    const withBytes = digestOf(`${key}${digest}`);
    if (known.digest === digest || this.#find(withBytes, now) !== null) return 'repeated';
    this.#remember(withBytes, { digest, at: now, seq: 0, row: 0 });
    return 'reused';
  }

  /** Writes what was added and has no record. Inside the transaction of what it is of. */
  saveAside(): Apply {
    const rows = this.#insertRows(this.#aside);
    return () => {
      const saved = new Set(this.#aside);
      this.#added = this.#added.filter((key) => !saved.has(key));
      this.#aside = [];
      this.#haveRows(rows);
    };
  }

  /** What was added stands in the segments by now. */
  committed(): void {
    this.#added = [];
  }

  /** What was added and is not on disk is not known. */
  takeBack(): void {
    for (const key of this.#added) this.#recent.delete(key);
    this.#added = [];
    this.#aside = [];
  }

  /**
   * Writes rows of a full generation, if there is one: more than ids came meanwhile, or in a long flood each generation would
   * be larger than the one before. Inside a transaction.
   * @param rows at least so many
   * @param lastSeq the newest event
   * @returns whether there is more to do
   */
  advance(rows: number, lastSeq: number): Apply<boolean> {
    const due = Math.max(rows, 1.25 * this.#came);
    this.#came = 0;
    if (!this.#sealed.isSealing && this.#recent.size >= this.#size) {
      this.#sealed.begin(this.#recent, this.#lastAt, lastSeq);
      this.#recent = new Map();
      // That takes as long as to write some rows.
      return () => true;
    }
    return this.#seal(due);
  }

  /**
   * Makes sure that the ids of all events up to a seq stay without their records, as far as they still count. Inside a
   * transaction.
   */
  keep(upTo: number, now: number): Apply {
    if (upTo <= this.#savedUpTo) return () => undefined;
    // All of a generation that is being sealed: its rows would stand in the way of those that are made here.
    const sealed = this.#seal(Infinity);
    const oldest = now - this.#window;
    const keys = [...this.#recent].filter(([, { seq, row, at }]) => row === 0 && seq <= upTo && at >= oldest);
    const rows = this.#insertRows(keys.map(([key]) => key));
    this.#saveUpTo(upTo);
    return () => {
      sealed();
      this.#haveRows(rows);
      this.#savedUpTo = Math.max(upTo, this.#savedUpTo);
    };
  }

  /**
   * Takes out what stands for the bodies of erased events. Their ids stay known: whatever comes with one of them is `reused`. Inside a
   * transaction.
   */
  forget(ids: readonly KnownBy[]): Apply {
    const stale = ids.length === 0 ? [] : this.#stale;
    for (const row of stale) this.#deleteRecent.run(row);
    const applied = ids.flatMap(({ key, digest }) => [
      this.#forget(key, digest, false),
      // With other bytes than the id had before, it is known by both.
      this.#forget(digestOf(`${key}${digest}`), digest, true),
    ]);
    return () => {
      this.#stale = this.#stale.slice(stale.length);
      for (const apply of applied) apply();
    };
  }

  /** @param all the key as well */
  #forget(key: string, digest: string, all: boolean): Apply {
    const sealed = this.#sealed.forget(key, digest, all);
    const isIn = (known: Known | undefined): known is Known => known?.digest === digest;
    for (const known of [this.#recent.get(key), this.#sealed.member(key)]) {
      if (!isIn(known) || known.row === 0) continue;
      if (all) this.#deleteRecent.run(known.row);
      else this.#shortenRecent.run(Buffer.from(key, 'latin1'), known.row);
    }
    return () => {
      sealed();
      const known = this.#recent.get(key);
      if (!isIn(known)) return;
      if (all) this.#recent.delete(key);
      else this.#recent.set(key, { ...known, digest: null });
    };
  }

  /** Clears away a bounded amount of what is older than the window. Inside a transaction. @returns whether there may be more */
  expire(now: number): Apply<boolean> {
    const before = now - this.#window;
    const apply = this.#sealed.expire(before);
    if (apply === null) return this.#expireRecent(before);
    return () => {
      apply();
      return true;
    };
  }

  /** A generation that never fills is never sealed: its oldest go one by one. */
  #expireRecent(before: number): Apply<boolean> {
    const old: string[] = [];
    for (const [key, { at, row }] of this.#recent) {
      if (at >= before || old.length === EXPIRE_AT_ONCE) break;
      old.push(key);
      if (row > 0) this.#deleteRecent.run(row);
    }
    const stale = this.#stale.slice(0, EXPIRE_AT_ONCE);
    for (const row of stale) this.#deleteRecent.run(row);
    return () => {
      for (const key of old) this.#recent.delete(key);
      this.#stale.splice(0, stale.length);
      return old.length === EXPIRE_AT_ONCE;
    };
  }

  /** What is known under a key and within the window, the newest where there are several. */
  #find(key: string, now: number): Pick<Known, 'digest'> | null {
    const oldest = now - this.#window;
    const near = this.#recent.get(key) ?? this.#sealed.member(key);
    return near !== undefined && near.at >= oldest ? near : this.#sealed.find(key, oldest);
  }

  #remember(key: string, known: Known): void {
    this.#note(key, known);
    this.#came += 1;
    this.#added.push(key);
    if (known.seq === 0) this.#aside.push(key);
  }

  #note(key: string, known: Known): void {
    const before = this.#recent.get(key);
    const isOlder = before !== undefined && before.at > known.at;
    const stale = isOlder ? known.row : (before?.row ?? 0);
    if (stale > 0) this.#stale.push(stale);
    this.#nextRow = Math.max(this.#nextRow, known.row + 1);
    if (isOlder) return;
    // Taken out first, so that the Map has the oldest in front.
    if (before !== undefined) this.#recent.delete(key);
    this.#recent.set(key, known);
    this.#lastAt = Math.max(this.#lastAt, known.at);
  }

  #insertRows(keys: readonly string[]): readonly (readonly [key: string, row: number])[] {
    return keys.map((key, index) => {
      const { digest, at } = this.#recent.get(key) as Known;
      const row = this.#nextRow + index;
      this.#insertRecent.run(row, Buffer.from(key + (digest ?? ''), 'latin1'), at);
      return [key, row];
    });
  }

  #haveRows(rows: readonly (readonly [key: string, row: number])[]): void {
    for (const [key, row] of rows) {
      const known = this.#recent.get(key);
      if (known !== undefined) this.#recent.set(key, { ...known, row });
      this.#nextRow = Math.max(this.#nextRow, row + 1);
    }
  }

  #seal(rows: number): Apply<boolean> {
    let savedUpTo = 0;
    const apply = this.#sealed.seal(rows, (stale, lastSeq) => {
      for (const row of stale) this.#deleteRecent.run(row);
      savedUpTo = lastSeq;
      this.#saveUpTo(lastSeq);
    });
    return () => {
      this.#savedUpTo = Math.max(this.#savedUpTo, savedUpTo);
      return apply() || this.#recent.size >= this.#size;
    };
  }

  /** In the table it only grows. */
  #saveUpTo(seq: number): void {
    this.#upsertSavedUpTo.run(SAVED_UP_TO, String(seq));
  }
}

/** Where it notes the newest event whose id, and those of all before it, are in its tables as far as they count. */
export const SAVED_UP_TO = 'ids-saved-up-to';
