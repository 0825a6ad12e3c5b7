import { hash } from 'node:crypto';
import type Database from 'better-sqlite3';
import { BloomFilter } from '../lib/bloom.ts';

/** Ids a generation holds before it is sealed. */
const GENERATION = 65_536;
/** Sealed ids written with a commit, for each id the commit adds: sealing keeps ahead without a stall. */
const SEAL_PER_ID = 4;
const SEAL_LEAST = 256;

interface Sealing {
  readonly generation: number;
  /** By first byte; each is sorted when its turn comes, for to sort all at once would hold up a commit. */
  readonly buckets: readonly string[][];
  readonly members: ReadonlyMap<string, number>;
  readonly lastAt: number;
  readonly lastRow: number;
  readonly filter: BloomFilter;
  /** Buckets written. */
  done: number;
}

/** Rows of sealed ids that are still to be taken out of `recent_ids`; after a restart they are sealed once more, in vain. */
interface Leftover {
  next: number;
  readonly last: number;
}

/**
 * The ids seen within the dedup window, at a cost that does not grow with their number.
 *
 * A B-tree over random ids dirties one page an insert once it outgrows a few hundred pages (measured: the commit rate
 * halves at two million ids). So an id goes through three states instead:
 * recent (appended to a plain table, looked up in a Set) → sealing (a full generation, sorted, written a few rows with
 * each commit) → sealed (sequential in one table; a Bloom filter in memory answers for it, the table confirms a hit).
 * Generations, not ids, expire. Every change happens inside the transaction of the events it is for.
 */
export class SeenIds {
  readonly #db: Database.Database;
  readonly #insertRecent;
  readonly #insertSealed;
  readonly #deleteRecent;
  readonly #findSealed;
  #recent = new Map<string, number>();
  #sealing: Sealing | null = null;
  #leftover: Leftover | null = null;
  readonly #sealed = new Map<number, { lastAt: number; filter: BloomFilter }>();
  #nextGeneration = 1;
  #nextRow = 1;
  #lastAt = 0;
  /** True while the memory is ahead of what is committed. */
  #dirty = false;
  readonly #size: number;

  constructor(db: Database.Database, generationSize: number = GENERATION) {
    this.#db = db;
    this.#size = generationSize;
    this.#insertRecent = db.prepare('INSERT INTO recent_ids (n, hash, at) VALUES (?, ?, ?)');
    this.#deleteRecent = db.prepare('DELETE FROM recent_ids WHERE n < ?');
    this.#insertSealed = db.prepare('INSERT OR IGNORE INTO sealed_ids (generation, hash) VALUES (?, ?)');
    this.#findSealed = db.prepare('SELECT 1 FROM sealed_ids WHERE generation = ? AND hash = ?').pluck();
    this.#load();
  }

  committed(): void {
    this.#dirty = false;
  }

  /** Takes back what the rolled back transaction had added. */
  rolledBack(): void {
    if (this.#dirty) this.#load();
    this.#dirty = false;
  }

  #load(): void {
    this.#recent.clear();
    this.#sealed.clear();
    this.#sealing = null;
    this.#leftover = null;
    this.#nextGeneration = 1;
    this.#nextRow = 1;
    for (const row of this.#db.prepare('SELECT generation, last_at, filter FROM generations').iterate()) {
      const { generation, last_at, filter } = row as { generation: number; last_at: number; filter: Buffer };
      this.#sealed.set(generation, { lastAt: last_at, filter: BloomFilter.from(filter) });
      this.#nextGeneration = Math.max(this.#nextGeneration, generation + 1);
    }
    for (const row of this.#db.prepare('SELECT n, hash, at FROM recent_ids ORDER BY n').iterate()) {
      const { n, hash: digest, at } = row as { n: number; hash: Buffer; at: number };
      this.#recent.set(digest.toString('latin1'), n);
      this.#nextRow = n + 1;
      this.#lastAt = Math.max(this.#lastAt, at);
    }
  }

  /** True when the id is new; it is then remembered, if the transaction commits. */
  add(id: string, now: number): boolean {
    const digest = digestOf(id);
    const key = digest.toString('latin1');
    if (this.#has(key, digest)) return false;
    this.#dirty = true;
    this.#insertRecent.run(this.#nextRow, digest, now);
    this.#recent.set(key, this.#nextRow);
    this.#nextRow += 1;
    this.#lastAt = Math.max(this.#lastAt, now);
    return true;
  }

  /** Moves sealing on in step with the ids a commit added; call it inside that commit. */
  advance(added: number): void {
    if (this.#sealing === null && this.#recent.size >= this.#size) this.#beginSealing();
    const rows = Math.max(SEAL_LEAST, added * SEAL_PER_ID);
    if (this.#sealing !== null) this.#seal(this.#sealing, rows);
    else if (this.#leftover !== null) this.#clearLeftover(this.#leftover, rows);
  }

  /** Forgets at most one generation whose newest id is older than `before`; true when there may be more. */
  expire(before: number): boolean {
    for (const [generation, { lastAt }] of this.#sealed) {
      if (lastAt >= before) continue;
      this.#dirty = true;
      const { changes } = this.#db
        .prepare(
          'DELETE FROM sealed_ids WHERE generation = ? AND hash IN (SELECT hash FROM sealed_ids WHERE generation = ? LIMIT 5000)',
        )
        .run(generation, generation);
      if (changes === 0) {
        this.#db.prepare('DELETE FROM generations WHERE generation = ?').run(generation);
        this.#sealed.delete(generation);
      }
      return true;
    }
    return false;
  }

  #has(key: string, digest: Buffer): boolean {
    if (this.#recent.has(key) || this.#sealing?.members.has(key) === true) return true;
    const high = digest.readUInt32LE(0);
    const low = digest.readUInt32LE(4);
    for (const [generation, { filter }] of this.#sealed) {
      if (filter.has(high, low) && this.#findSealed.get(generation, digest) !== undefined) return true;
    }
    return false;
  }

  #beginSealing(): void {
    const members = this.#recent;
    const buckets = Array.from({ length: 256 }, (): string[] => []);
    for (const key of members.keys()) buckets[key.charCodeAt(0)]?.push(key);
    this.#sealing = {
      generation: this.#nextGeneration,
      buckets,
      members,
      lastAt: this.#lastAt,
      lastRow: this.#nextRow - 1,
      filter: BloomFilter.sized(members.size),
      done: 0,
    };
    this.#nextGeneration += 1;
    this.#recent = new Map();
  }

  /** Whole buckets until `rows` are written or none is left; then the generation is complete. */
  #seal(sealing: Sealing, rows: number): void {
    const { generation, buckets, members, filter, lastAt, lastRow } = sealing;
    this.#dirty = true;
    for (let written = 0; written < rows && sealing.done < buckets.length; sealing.done += 1) {
      const keys = buckets[sealing.done]?.sort() ?? [];
      for (const key of keys) {
        const digest = Buffer.from(key, 'latin1');
        filter.add(digest.readUInt32LE(0), digest.readUInt32LE(4));
        this.#insertSealed.run(generation, digest);
      }
      written += keys.length;
    }
    if (sealing.done < buckets.length) return;
    this.#db
      .prepare('INSERT INTO generations (generation, last_at, ids, filter) VALUES (?, ?, ?, ?)')
      .run(generation, lastAt, members.size, filter.bytes);
    this.#sealed.set(generation, { lastAt, filter });
    this.#sealing = null;
    this.#leftover = { next: lastRow - members.size + 1, last: lastRow };
  }

  #clearLeftover(leftover: Leftover, rows: number): void {
    this.#dirty = true;
    leftover.next = Math.min(leftover.next + rows, leftover.last + 1);
    this.#deleteRecent.run(leftover.next);
    if (leftover.next > leftover.last) this.#leftover = null;
  }
}

/** 16 bytes are enough: two of 2^40 ids meet with a chance of 2^-49. */
function digestOf(id: string): Buffer {
  return hash('sha256', id, 'buffer').subarray(0, 16);
}
