import type { StoreBase } from './events.ts';
import { digestOf } from './identity.ts';
import { digestIn, SealedIds, type Known } from './sealed-ids.ts';
import { KEY_BYTES, NO_ID, type EventHashes } from './segments/format.ts';

/** Ids of the generation in memory that `expire` deletes in one call. */
const EXPIRE_AT_ONCE = 5000;

/**
 * `new`: the id was not seen within the window. `repeated`: the same id with the same bytes. `reused`: the id is known with other
 * bytes; with these it is `repeated` from then on.
 */
export type DedupResult = 'new' | 'repeated' | 'reused';

/**
 * The ids seen within the dedup window, at a cost that does not grow with their number.
 *
 * A B-tree over random ids dirties one page an insert once it outgrows a few hundred pages (measured: the commit rate
 * halves at two million ids). Instead an id passes three states: recent (in memory; on disk in the record of its event, or in
 * `recent_ids` where there is no record) → sealing (a full generation, sorted, is written a few rows at a time between the
 * commits) → sealed (in `sealed_ids`; a Bloom filter in memory answers, the table confirms a hit). Whole generations expire.
 *
 * Methods that write run inside a transaction; memory follows when it is committed.
 */
export class SeenIds {
  readonly #base: Pick<StoreBase, 'transactions' | 'checkpoints'>;
  readonly #insertRecent;
  readonly #deleteRecent;
  readonly #shortenRecent;
  readonly #sealed: SealedIds;
  /** Oldest first. */
  #recent = new Map<string, Known>();
  /** Keys added since the last commit, and those of them without a record. */
  #added: string[] = [];
  #aside: string[] = [];
  /** Rows of `recent_ids` that a newer entry of the same key replaces. */
  #stale: number[] = [];
  /** Ids added since the last step of sealing. */
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
  constructor(base: Omit<StoreBase, 'events'>, window: number, generationSize: number) {
    const { db } = base;
    this.#base = base;
    this.#window = window;
    this.#size = generationSize;
    this.#insertRecent = db.prepare('INSERT INTO recent_ids (n, hash, at) VALUES (?, ?, ?)');
    this.#deleteRecent = db.prepare('DELETE FROM recent_ids WHERE n = ?');
    this.#shortenRecent = db.prepare('UPDATE recent_ids SET hash = ? WHERE n = ?');
    this.#sealed = new SealedIds(base);
    this.#savedUpTo = Number(base.checkpoints.load(SAVED_UP_TO) ?? 0);
    for (const row of db.prepare('SELECT n, hash, at FROM recent_ids ORDER BY n').iterate()) {
      const { n, hash: entry, at } = row as { n: number; hash: Buffer; at: number };
      this.#nextRow = n + 1;
      this.#note(entry.toString('latin1', 0, KEY_BYTES), { digest: digestIn(entry), at, seq: 0, row: n });
    }
  }

  /** Seq up to which the tables have every id that still counts. */
  get savedUpTo(): number {
    return this.#savedUpTo;
  }

  /** True while a generation is being written; `keep` would write all of its rest at once. */
  get isSealing(): boolean {
    return this.#sealed.isSealing;
  }

  /** Adds an id found in a record at start. @param at since when it counts, milliseconds since the epoch */
  restore({ key, digest }: EventHashes, seq: number, at: number): void {
    this.#note(key, { digest: digest === NO_ID.digest ? null : digest, at, seq, row: 0 });
  }

  /**
   * Remembers the id unless it is `repeated`; `takeBack` reverts that until `committed`.
   * @param now milliseconds since the epoch
   * @param seq of its event if it is `new`; 0 where it gets no record
   */
  add({ key, digest }: EventHashes, now: number, seq: number): DedupResult {
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

  /** Writes the added ids that have no record, in the transaction that writes their events. */
  saveAside(): void {
    const keys = this.#aside;
    this.#insertRows(keys);
    this.#base.transactions.afterCommit(() => {
      const saved = new Set(keys);
      this.#added = this.#added.filter((key) => !saved.has(key));
      this.#aside = [];
    });
  }

  /** What was added is in the segments now. */
  committed(): void {
    this.#added = [];
  }

  /** Forgets what was added and is not on disk. */
  takeBack(): void {
    for (const key of this.#added) this.#recent.delete(key);
    this.#added = [];
    this.#aside = [];
  }

  /**
   * Begins to seal a full generation, or writes some rows of it: more than ids came since the last step, or generations would grow
   * in a long flood.
   * @param rows at least so many
   * @param lastSeq the newest event
   * @returns whether there is more to do
   */
  advance(rows: number, lastSeq: number): boolean {
    const due = Math.max(rows, 1.25 * this.#came);
    this.#came = 0;
    if (this.#sealed.isSealing || this.#recent.size < this.#size) return this.#seal(due);
    // This takes as long as writing some rows.
    this.#sealed.begin(this.#recent, this.#lastAt, lastSeq);
    this.#recent = new Map();
    return true;
  }

  /** Writes the ids of all events up to a seq that still count, before their records are removed. */
  keep(upTo: number, now: number): void {
    if (upTo <= this.#savedUpTo) return;
    // The rows of a generation that is being sealed would replace those made here.
    this.#seal(Infinity);
    const oldest = now - this.#window;
    const due = [...this.#recent].filter(([, { seq, row, at }]) => row === 0 && seq <= upTo && at >= oldest);
    this.#insertRows(due.map(([key]) => key));
    this.#saveUpTo(upTo);
  }

  /** Deletes the digests of erased events. Their ids stay known: the same id is `reused` from then on, whatever its bytes. */
  forget(ids: readonly EventHashes[]): void {
    if (ids.length > 0) this.#deleteStale(Infinity);
    for (const { key, digest } of ids) {
      this.#forget(key, digest, false);
      // Bytes that came later under the same id have a key of their own.
      this.#forget(digestOf(`${key}${digest}`), digest, true);
    }
  }

  /** @param all deletes the key as well */
  #forget(key: string, digest: string, all: boolean): void {
    this.#sealed.forget(key, digest, all);
    for (const known of [this.#recent.get(key), this.#sealed.member(key)]) {
      if (known?.digest !== digest || known.row === 0) continue;
      if (all) this.#deleteRecent.run(known.row);
      else this.#shortenRecent.run(Buffer.from(key, 'latin1'), known.row);
    }
    this.#base.transactions.afterCommit(() => {
      const known = this.#recent.get(key);
      if (known?.digest !== digest) return;
      if (all) this.#recent.delete(key);
      else known.digest = null;
    });
  }

  /** Deletes a bounded number of ids older than the window. @returns whether there may be more */
  expire(now: number): boolean {
    const before = now - this.#window;
    return this.#sealed.expire(before) || this.#expireRecent(before);
  }

  /** A generation that never fills is never sealed; its oldest ids go one by one. */
  #expireRecent(before: number): boolean {
    const old: string[] = [];
    for (const [key, { at, row }] of this.#recent) {
      if (at >= before || old.length === EXPIRE_AT_ONCE) break;
      old.push(key);
      if (row > 0) this.#deleteRecent.run(row);
    }
    this.#deleteStale(EXPIRE_AT_ONCE);
    this.#base.transactions.afterCommit(() => {
      for (const key of old) this.#recent.delete(key);
    });
    return old.length === EXPIRE_AT_ONCE;
  }

  #deleteStale(most: number): void {
    const stale = this.#stale.slice(0, most);
    for (const row of stale) this.#deleteRecent.run(row);
    this.#base.transactions.afterCommit(() => void this.#stale.splice(0, stale.length));
  }

  /** The newest entry of a key within the window. */
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
    if (isOlder) return;
    // Deleted first, so that the Map stays ordered by age.
    if (before !== undefined) this.#recent.delete(key);
    this.#recent.set(key, known);
    this.#lastAt = Math.max(this.#lastAt, known.at);
  }

  #insertRows(keys: readonly string[]): void {
    for (const key of keys) {
      const known = this.#recent.get(key) as Known;
      const row = this.#nextRow;
      this.#nextRow += 1;
      this.#insertRecent.run(row, Buffer.from(key + (known.digest ?? ''), 'latin1'), known.at);
      this.#base.transactions.afterCommit(() => (known.row = row));
    }
  }

  #seal(rows: number): boolean {
    const isMore = this.#sealed.seal(rows, (stale, lastSeq) => {
      for (const row of stale) this.#deleteRecent.run(row);
      this.#saveUpTo(lastSeq);
    });
    return isMore || this.#recent.size >= this.#size;
  }

  #saveUpTo(seq: number): void {
    const { transactions, checkpoints } = this.#base;
    if (seq > Number(checkpoints.load(SAVED_UP_TO) ?? -1)) checkpoints.save(SAVED_UP_TO, String(seq));
    transactions.afterCommit(() => (this.#savedUpTo = Math.max(seq, this.#savedUpTo)));
  }
}

/** Key of the checkpoint with `savedUpTo`. */
export const SAVED_UP_TO = 'ids-saved-up-to';
