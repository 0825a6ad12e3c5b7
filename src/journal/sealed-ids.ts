import type Database from 'better-sqlite3';
import { BloomFilter, BloomFilters } from '../lib/bloom.ts';
import { DIGEST_BYTES, KEY_BYTES } from './segments/format.ts';

/** Rows that one statement writes: to run it costs as much as a row does. */
const SOME = 16;

/** What is remembered under one key. */
export interface Known {
  /** Of the bytes; null where the event was erased. */
  readonly digest: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Of the event in the segments; 0 for what is in `recent_ids` alone. */
  readonly seq: number;
  /** In `recent_ids`; 0 for what is not there. */
  readonly row: number;
}

/** A full generation on its way into the table. */
interface Sealing {
  readonly generation: number;
  /** By first byte; each is sorted when its turn comes, for to sort all at once would take long. */
  readonly buckets: readonly string[][];
  readonly members: Map<string, Known>;
  readonly lastAt: number;
  /** The newest event whose id is in it or was before. */
  readonly lastSeq: number;
  readonly filter: BloomFilter;
  /** Buckets written. */
  done: number;
  /** Rows of `recent_ids` that stand for what is written. */
  stale: readonly number[];
}

/** Makes the memory what the transaction has made the database; to be called once that is committed. */
export type Apply<T = void> = () => T;

/**
 * Generations of ids that are full: sorted, written a few rows at a time, and then answered for by a Bloom filter in memory
 * and the table, which confirms a hit.
 */
export class SealedIds {
  readonly #db: Database.Database;
  readonly #insert;
  readonly #insertSome;
  readonly #clear;
  readonly #find;
  readonly #delete;
  readonly #shorten;
  /** By generation, when its newest came. */
  readonly #generations = new Map<number, number>();
  readonly #filters = new BloomFilters();
  #next = 1;
  #sealing: Sealing | null = null;

  constructor(db: Database.Database) {
    this.#db = db;
    this.#clear = db.prepare('DELETE FROM sealed_ids WHERE generation = ?');
    const insert = (rows: number): Database.Statement =>
      db.prepare(
        `INSERT OR REPLACE INTO sealed_ids (generation, hash, age) VALUES ${Array(rows).fill('(?, ?, ?)').join(', ')}`,
      );
    this.#insert = insert(1);
    this.#insertSome = insert(SOME);
    this.#delete = db.prepare('DELETE FROM sealed_ids WHERE generation = ? AND hash = ?');
    this.#shorten = db.prepare('UPDATE OR REPLACE sealed_ids SET hash = ? WHERE generation = ? AND hash = ?');
    this.#find = db.prepare(
      'SELECT hash, age FROM sealed_ids WHERE generation = ? AND hash >= ? AND hash < ?',
    );
    for (const row of db.prepare('SELECT generation, last_at, filter FROM generations').iterate()) {
      const { generation, last_at, filter } = row as { generation: number; last_at: number; filter: Buffer };
      this.#generations.set(generation, last_at);
      this.#filters.add(generation, BloomFilter.from(filter));
      this.#next = Math.max(this.#next, generation + 1);
    }
  }

  get isSealing(): boolean {
    return this.#sealing !== null;
  }

  /** Of those that are being written. */
  member(key: string): Known | undefined {
    return this.#sealing?.members.get(key);
  }

  /** What is known under a key since `oldest` at most, the newest where there are several. */
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

  /** @param lastSeq the newest event whose id is among them or was before */
  begin(members: Map<string, Known>, lastAt: number, lastSeq: number): void {
    const buckets = Array.from({ length: 256 }, (): string[] => []);
    for (const key of members.keys()) buckets[key.charCodeAt(0)]?.push(key);
    const filter = BloomFilter.sized(members.size);
    this.#sealing = { generation: this.#next, buckets, members, lastAt, lastSeq, filter, done: 0, stale: [] };
    this.#next += 1;
  }

  /**
   * Writes whole buckets until there are so many rows, or none is left; then the generation is complete, and `complete` is
   * told of it, and of the rows of `recent_ids` that are not needed any more. Inside a transaction.
   * @returns whether there is more to do
   */
  seal(rows: number, complete: (stale: readonly number[], lastSeq: number) => void): Apply<boolean> {
    const sealing = this.#sealing;
    if (sealing === null) return () => false;
    const { generation, buckets, members, filter, lastAt, lastSeq } = sealing;
    let { done } = sealing;
    const stale = [...sealing.stale];
    const values: (number | Buffer)[] = [];
    // Of one that was begun before a restart: an id can have come with other bytes since, and would be known by both.
    if (done === 0) this.#clear.run(generation);
    for (let written = 0; written < rows && done < buckets.length; done += 1) {
      const keys = buckets[done]?.sort() ?? [];
      for (const key of keys) {
        const known = members.get(key);
        // Forgotten meanwhile.
        if (known === undefined) continue;
        const entry = Buffer.from(key + (known.digest ?? ''), 'latin1');
        filter.add(entry.readUInt32LE(0), entry.readUInt32LE(4));
        values.push(generation, entry, lastAt - known.at);
        if (known.row > 0) stale.push(known.row);
      }
      written += keys.length;
    }
    this.#write(values);
    if (done < buckets.length)
      return () => {
        sealing.done = done;
        sealing.stale = stale;
        return true;
      };
    this.#db
      .prepare('INSERT INTO generations (generation, last_at, ids, filter) VALUES (?, ?, ?, ?)')
      .run(generation, lastAt, members.size, filter.bytes);
    complete(stale, lastSeq);
    return () => {
      this.#generations.set(generation, lastAt);
      this.#filters.add(generation, filter);
      this.#sealing = null;
      return false;
    };
  }

  /** @param values three for each row */
  #write(values: readonly (number | Buffer)[]): void {
    let at = 0;
    for (; at + 3 * SOME <= values.length; at += 3 * SOME)
      this.#insertSome.run(values.slice(at, at + 3 * SOME));
    for (; at < values.length; at += 3) this.#insert.run(values.slice(at, at + 3));
  }

  /** Takes a digest out of what is known under a key, and with `all` the key as well. Inside a transaction. */
  forget(key: string, digest: string, all: boolean): Apply {
    const entry = Buffer.from(key + digest, 'latin1');
    const [high, low] = [entry.readUInt32LE(0), entry.readUInt32LE(4)];
    for (const generation of this.#filters.having(high, low)) this.#forget(generation, entry, all);
    // Begun, by this process or by one before it.
    this.#forget(this.#sealing?.generation ?? this.#next, entry, all);
    const members = this.#sealing?.members;
    const known = members?.get(key);
    return () => {
      if (members === undefined || known?.digest !== digest) return;
      if (all) members.delete(key);
      else members.set(key, { ...known, digest: null });
    };
  }

  #forget(generation: number, entry: Buffer, all: boolean): void {
    if (all) this.#delete.run(generation, entry);
    else this.#shorten.run(entry.subarray(0, KEY_BYTES), generation, entry);
  }

  /** Clears away a part of a generation that is older than a time; null when there is none. Inside a transaction. */
  expire(before: number): Apply | null {
    for (const [generation, lastAt] of this.#generations) {
      if (lastAt >= before) continue;
      const { changes } = this.#db
        .prepare(
          'DELETE FROM sealed_ids WHERE generation = ? AND hash IN (SELECT hash FROM sealed_ids WHERE generation = ? LIMIT 5000)',
        )
        .run(generation, generation);
      if (changes > 0) return () => undefined;
      this.#db.prepare('DELETE FROM generations WHERE generation = ?').run(generation);
      return () => {
        this.#generations.delete(generation);
        this.#filters.remove(generation);
      };
    }
    return null;
  }
}

/** Above any digest. */
const LAST = Buffer.alloc(DIGEST_BYTES + 1, 0xff);

/** Of what is stored of an event; null where the event was erased. */
export function digestIn(entry: Buffer): string | null {
  return entry.length < KEY_BYTES + DIGEST_BYTES ? null : entry.toString('latin1', KEY_BYTES);
}
