import type Database from 'better-sqlite3';
import { BloomFilter, BloomFilters } from '../lib/bloom.ts';
import type { StoreBase } from './events.ts';
import { DIGEST_BYTES, KEY_BYTES } from './segments/format.ts';

/** Rows that one statement writes: running it costs as much as a row does. */
const ROWS_AT_ONCE = 16;

/** What is remembered under one key. */
export interface Known {
  /** Of the bytes; null where the event was erased. */
  digest: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Of the event in the segments; 0 for an id in `recent_ids` only. */
  readonly seq: number;
  /** Of `recent_ids`; 0 for an id that has none. */
  row: number;
}

/** A full generation that is being written. */
interface Sealing {
  readonly generation: number;
  /** By first byte; each is sorted when it is written, because sorting all at once takes long. */
  readonly buckets: readonly string[][];
  readonly members: Map<string, Known>;
  readonly lastAt: number;
  /** Newest event whose id is in this generation or an earlier one. */
  readonly lastSeq: number;
  readonly filter: BloomFilter;
  /** Buckets written. */
  done: number;
  /** Rows of `recent_ids` that the written rows replace. */
  stale: readonly number[];
}

/**
 * Full generations of ids: sorted, written a few rows at a time, and from then on answered by a Bloom filter in memory and the
 * table. Methods that write run inside a transaction; memory follows when it is committed.
 */
export class SealedIds {
  readonly #base: Pick<StoreBase, 'db' | 'transactions'>;
  readonly #insert;
  readonly #insertSome;
  readonly #clear;
  readonly #find;
  readonly #delete;
  readonly #shorten;
  /** By generation, when its newest id came. */
  readonly #generations = new Map<number, number>();
  readonly #filters = new BloomFilters();
  #next = 1;
  #sealing: Sealing | null = null;

  constructor(base: Pick<StoreBase, 'db' | 'transactions'>) {
    const { db } = base;
    this.#base = base;
    this.#clear = db.prepare('DELETE FROM sealed_ids WHERE generation = ?');
    const insert = (rows: number): Database.Statement =>
      db.prepare(
        `INSERT OR REPLACE INTO sealed_ids (generation, hash, age) VALUES ${Array(rows).fill('(?, ?, ?)').join(', ')}`,
      );
    this.#insert = insert(1);
    this.#insertSome = insert(ROWS_AT_ONCE);
    this.#delete = db.prepare('DELETE FROM sealed_ids WHERE generation = ? AND hash = ?');
    this.#shorten = db.prepare('UPDATE OR REPLACE sealed_ids SET hash = ? WHERE generation = ? AND hash = ?');
    this.#find = db.prepare(
      'SELECT hash, age FROM sealed_ids WHERE generation = ? AND hash >= ? AND hash < ?',
    );
    for (const row of db.prepare('SELECT generation, last_at, filter FROM generations').iterate()) {
      const { generation, last_at, filter } = row as { generation: number; last_at: number; filter: Buffer };
      this.#generations.set(generation, last_at);
      this.#filters.add(generation, filter);
      this.#next = Math.max(this.#next, generation + 1);
    }
  }

  get isSealing(): boolean {
    return this.#sealing !== null;
  }

  /** An entry of the generation that is being written. */
  member(key: string): Known | undefined {
    return this.#sealing?.members.get(key);
  }

  /** The newest entry of a key that is not older than `oldest`. */
  find(key: string, oldest: number): Pick<Known, 'digest'> | null {
    if (this.#generations.size === 0) return null;
    const bytes = Buffer.from(key, 'latin1');
    const high = bytes.readUInt32LE(0);
    const low = bytes.readUInt32LE(4);
    let newest: { digest: string | null; at: number } | null = null;
    for (const generation of this.#filters.having(high, low)) {
      const lastAt = this.#generations.get(generation) as number;
      if (lastAt < oldest) continue;
      const row = this.#find.get(generation, bytes, Buffer.concat([bytes, LAST])) as
        { hash: Buffer; age: number | null } | undefined;
      const at = lastAt - (row?.age ?? 0);
      if (row === undefined || at < oldest || (newest !== null && at < newest.at)) continue;
      newest = { digest: digestIn(row.hash), at };
    }
    return newest;
  }

  /** @param lastSeq newest event whose id is among the members or in an earlier generation */
  begin(members: Map<string, Known>, lastAt: number, lastSeq: number): void {
    const buckets = Array.from({ length: 256 }, (): string[] => []);
    for (const key of members.keys()) buckets[key.charCodeAt(0)]?.push(key);
    const filter = new BloomFilter(members.size);
    this.#sealing = { generation: this.#next, buckets, members, lastAt, lastSeq, filter, done: 0, stale: [] };
    this.#next += 1;
  }

  /**
   * Writes whole buckets until `rows` are written or none is left.
   * @param onComplete called with the generation's last bucket
   * @returns whether there is more to do
   */
  seal(rows: number, onComplete: (stale: readonly number[], lastSeq: number) => void): boolean {
    const sealing = this.#sealing;
    if (sealing === null) return false;
    const { generation, buckets, members, filter, lastAt, lastSeq } = sealing;
    let { done } = sealing;
    const stale = [...sealing.stale];
    const values: (number | Buffer)[] = [];
    // A process before this one may have begun it, with ids that came with other bytes since.
    if (done === 0) this.#clear.run(generation);
    for (let written = 0; written < rows && done < buckets.length; done += 1) {
      const keys = buckets[done]?.sort() ?? [];
      for (const key of keys) {
        const known = members.get(key);
        // Undefined once it was erased.
        if (known === undefined) continue;
        const entry = Buffer.from(key + (known.digest ?? ''), 'latin1');
        filter.add(entry.readUInt32LE(0), entry.readUInt32LE(4));
        values.push(generation, entry, lastAt - known.at);
        if (known.row > 0) stale.push(known.row);
      }
      written += keys.length;
    }
    this.#write(values);
    const isMore = done < buckets.length;
    if (!isMore) {
      this.#base.db
        .prepare('INSERT INTO generations (generation, last_at, ids, filter) VALUES (?, ?, ?, ?)')
        .run(generation, lastAt, members.size, filter.bytes);
      onComplete(stale, lastSeq);
    }
    this.#base.transactions.afterCommit(() => {
      sealing.done = done;
      sealing.stale = stale;
      if (isMore) return;
      this.#generations.set(generation, lastAt);
      this.#filters.add(generation, filter.bytes);
      this.#sealing = null;
    });
    return isMore;
  }

  /** @param values three for each row */
  #write(values: readonly (number | Buffer)[]): void {
    const some = 3 * ROWS_AT_ONCE;
    let at = 0;
    for (; at + some <= values.length; at += some) this.#insertSome.run(values.slice(at, at + some));
    for (; at < values.length; at += 3) this.#insert.run(values.slice(at, at + 3));
  }

  /** Deletes the digest of a key, and with `all` the key as well, where its digest is this one. */
  forget(key: string, digest: string, all: boolean): void {
    const entry = Buffer.from(key + digest, 'latin1');
    const [high, low] = [entry.readUInt32LE(0), entry.readUInt32LE(4)];
    const begun = this.#sealing?.generation ?? this.#next;
    for (const generation of [...this.#filters.having(high, low), begun])
      if (all) this.#delete.run(generation, entry);
      else this.#shorten.run(entry.subarray(0, KEY_BYTES), generation, entry);
    const members = this.#sealing?.members;
    const known = members?.get(key);
    this.#base.transactions.afterCommit(() => {
      if (known?.digest !== digest) return;
      if (all) members?.delete(key);
      else known.digest = null;
    });
  }

  /** Deletes a part of a generation that is older than a time. @returns false when there is none */
  expire(before: number): boolean {
    const old = [...this.#generations].find(([, lastAt]) => lastAt < before);
    if (old === undefined) return false;
    const [generation] = old;
    const { db, transactions } = this.#base;
    const { changes } = db
      .prepare(
        'DELETE FROM sealed_ids WHERE generation = ? AND hash IN (SELECT hash FROM sealed_ids WHERE generation = ? LIMIT 5000)',
      )
      .run(generation, generation);
    if (changes > 0) return true;
    db.prepare('DELETE FROM generations WHERE generation = ?').run(generation);
    transactions.afterCommit(() => {
      this.#generations.delete(generation);
      this.#filters.remove(generation);
    });
    return true;
  }
}

/** Above any digest. */
const LAST = Buffer.alloc(DIGEST_BYTES + 1, 0xff);

/** The digest in a stored entry; null where the event was erased. */
export function digestIn(entry: Buffer): string | null {
  return entry.length < KEY_BYTES + DIGEST_BYTES ? null : entry.toString('latin1', KEY_BYTES);
}
