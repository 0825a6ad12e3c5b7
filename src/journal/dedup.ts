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
  readonly members: ReadonlyMap<string, Known>;
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

/** What is remembered under one key. */
interface Known {
  /** Row among the recent ones. */
  readonly n: number;
  /** Of the bytes; null in older journals, which knew ids only. */
  readonly digest: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Where an event came in, its id there, and its bytes: together they tell a repetition. */
export interface Identity {
  readonly source: string;
  readonly id: string;
  readonly body: Uint8Array;
}

/**
 * `new`: never seen within the window. `repeated`: the same id with the same bytes. `reused`: the id is known, with other
 * bytes; seen again with those, it is `repeated`.
 */
export type Seen = 'new' | 'repeated' | 'reused';

/**
 * The events seen within the dedup window, at a cost that does not grow with their number.
 *
 * A B-tree over random ids dirties one page an insert once it outgrows a few hundred pages (measured: the commit rate
 * halves at two million ids). So an id goes through three states instead:
 * recent (appended to a plain table, looked up in a Set) → sealing (a full generation, sorted, written a few rows with
 * each commit) → sealed (sequential in one table; a Bloom filter in memory answers for it, the table confirms a hit).
 * Each id counts for the window and no longer; what is past it is cleared away by generations. Every change happens inside the transaction of the events it is for.
 */
export class SeenIds {
  readonly #db: Database.Database;
  readonly #insertRecent;
  readonly #insertSealed;
  readonly #deleteRecent;
  readonly #findSealed;
  #recent = new Map<string, Known>();
  #sealing: Sealing | null = null;
  #leftover: Leftover | null = null;
  readonly #sealed = new Map<number, { lastAt: number; filter: BloomFilter }>();
  #nextGeneration = 1;
  #nextRow = 1;
  #lastAt = 0;
  /** True while the memory is ahead of what is committed. */
  #dirty = false;
  /** Until then ids of an older journal may still count. */
  #formerUntil = 0;
  readonly #window: number;
  readonly #size: number;

  /** @param window milliseconds an id is remembered */
  constructor(db: Database.Database, window: number, generationSize: number = GENERATION) {
    this.#db = db;
    this.#window = window;
    this.#size = generationSize;
    this.#insertRecent = db.prepare('INSERT INTO recent_ids (n, hash, at) VALUES (?, ?, ?)');
    this.#deleteRecent = db.prepare('DELETE FROM recent_ids WHERE n < ?');
    this.#insertSealed = db.prepare(
      'INSERT OR IGNORE INTO sealed_ids (generation, hash, age) VALUES (?, ?, ?)',
    );
    this.#findSealed = db.prepare(
      'SELECT hash, age FROM sealed_ids WHERE generation = ? AND hash >= ? AND hash < ?',
    );
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
      const { n, hash: entry, at } = row as { n: number; hash: Buffer; at: number };
      const key = entry.toString('latin1', 0, KEY);
      // Taken out first, so that the Map has the oldest in front.
      this.#recent.delete(key);
      this.#note(key, { n, digest: digestIn(entry), at });
    }
    const { value } = (this.#db.prepare('SELECT value FROM checkpoints WHERE key = ?').get(IDS_OF_BEFORE) ??
      {}) as {
      value?: string;
    };
    this.#formerUntil = value === undefined ? 0 : Number(value) + this.#window;
  }

  /** What is not `repeated` is remembered, if the transaction commits. @param now milliseconds since the epoch */
  add({ source, id, body }: Identity, now: number): Seen {
    const digest = digestOf(body, BODY);
    // The length tells where the source ends, so that no id can be spelled like another source's.
    const key = digestOf(`${source.length}:${source}${id}`);
    const known = this.#find(key, now);
    if (known === null) {
      if (now <= this.#formerUntil && this.#find(digestOf(id), now)?.digest === null) return 'repeated';
      this.#remember(key, digest, now);
      return 'new';
    }
    if (known.digest === digest) return 'repeated';
    const other = digestOf(`${key}${digest}`);
    if (this.#find(other, now) !== null) return 'repeated';
    this.#remember(other, digest, now);
    return 'reused';
  }

  /** Moves sealing on in step with the ids a commit added; call it inside that commit. */
  advance(added: number): void {
    if (this.#sealing === null && this.#recent.size >= this.#size) this.#beginSealing();
    const rows = Math.max(SEAL_LEAST, added * SEAL_PER_ID);
    if (this.#sealing !== null) this.#seal(this.#sealing, rows);
    else if (this.#leftover !== null) this.#clearLeftover(this.#leftover, rows);
  }

  /** Clears away a bounded amount of what is older than the window; true when there may be more. */
  expire(now: number): boolean {
    const before = now - this.#window;
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
    return this.#expireRecent(before);
  }

  /** A generation that never fills is never sealed: its oldest go one by one. */
  #expireRecent(before: number): boolean {
    // What is being sealed has its rows in front of them.
    if (this.#sealing !== null || this.#leftover !== null) return false;
    let last: number | null = null;
    let count = 0;
    for (const [key, { n, at }] of this.#recent) {
      if (at >= before || count === EXPIRE_AT_ONCE) break;
      this.#recent.delete(key);
      last = n;
      count += 1;
    }
    if (last === null) return false;
    this.#dirty = true;
    this.#deleteRecent.run(last + 1);
    return count === EXPIRE_AT_ONCE;
  }

  /** What is known under a key and within the window, the newest where there are several. */
  #find(key: string, now: number): Pick<Known, 'digest'> | null {
    const oldest = now - this.#window;
    const near = this.#recent.get(key) ?? this.#sealing?.members.get(key);
    if (near !== undefined && near.at >= oldest) return near;
    if (near !== undefined) {
      // Out of the way of what may be remembered now, so that the Map has the oldest in front. What is sealed is older.
      this.#recent.delete(key);
      return null;
    }
    if (this.#sealed.size === 0) return null;
    const bytes = Buffer.from(key, 'latin1');
    const high = bytes.readUInt32LE(0);
    const low = bytes.readUInt32LE(4);
    let newest: { digest: string | null; at: number } | null = null;
    for (const [generation, { filter, lastAt }] of this.#sealed) {
      if (lastAt < oldest || !filter.has(high, low)) continue;
      const row = this.#findSealed.get(generation, bytes, Buffer.concat([bytes, LAST])) as
        { hash: Buffer; age: number | null } | undefined;
      const at = lastAt - (row?.age ?? 0);
      if (row === undefined || at < oldest || (newest !== null && at < newest.at)) continue;
      newest = { digest: digestIn(row.hash), at };
    }
    return newest;
  }

  #remember(key: string, digest: string, now: number): void {
    this.#dirty = true;
    this.#insertRecent.run(this.#nextRow, Buffer.from(key + digest, 'latin1'), now);
    this.#note(key, { n: this.#nextRow, digest, at: now });
  }

  #note(key: string, known: Known): void {
    this.#recent.set(key, known);
    this.#nextRow = known.n + 1;
    this.#lastAt = Math.max(this.#lastAt, known.at);
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
        const known = members.get(key);
        const entry = Buffer.from(key + (known?.digest ?? ''), 'latin1');
        filter.add(entry.readUInt32LE(0), entry.readUInt32LE(4));
        this.#insertSealed.run(generation, entry, lastAt - (known?.at ?? lastAt));
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

/** Ids of a generation that is not full, cleared away at once. */
const EXPIRE_AT_ONCE = 5000;

/** Where the database notes when it was one that knew ids only, milliseconds since the epoch. */
export const IDS_OF_BEFORE = 'ids-of-before';

/**
 * Bytes of a key: two of 2^32 meet with a chance of 2^-33, and none can be made to fit. Twelve, because V8 copies a piece of
 * a string that is so short, and keeps the whole of a longer one.
 */
const KEY = 12;
/** Bytes of a body's digest, after the key: to make another body fit a given one takes 2^64 tries. */
const BODY = 8;
/** Above any digest. */
const LAST = Buffer.alloc(BODY + 1, 0xff);

/** A character for each byte. */
function digestOf(data: string | Uint8Array, length: number = KEY): string {
  return hash('sha256', data, 'binary').slice(0, length);
}

/** Of what is stored of an event; null in older journals. */
function digestIn(entry: Buffer): string | null {
  return entry.length < KEY + BODY ? null : entry.toString('latin1', KEY);
}
