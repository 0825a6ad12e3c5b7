import { hash } from 'node:crypto';
import type Database from 'better-sqlite3';
import { BloomFilter } from '../lib/bloom.ts';
import { DIGEST_BYTES, KEY_BYTES } from './segments/format.ts';

/** Ids a generation holds before it is sealed. */
const GENERATION = 65_536;
/** Ids of a generation that is not full, cleared away at once. */
const EXPIRE_AT_ONCE = 5000;

/** What is remembered under one key. */
interface Known {
  /** Of the bytes; null in older journals, which knew ids only. */
  readonly digest: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Of the event in the segments; 0 for what is in `recent_ids` alone. */
  readonly seq: number;
  /** In `recent_ids`; 0 for what is not there. */
  readonly row: number;
}

interface Sealing {
  readonly generation: number;
  /** By first byte; each is sorted when its turn comes, for to sort all at once would take long. */
  readonly buckets: readonly string[][];
  readonly members: ReadonlyMap<string, Known>;
  readonly lastAt: number;
  /** The newest event whose id is in it or was before. */
  readonly lastSeq: number;
  readonly filter: BloomFilter;
  /** Buckets written. */
  done: number;
}

/** What tells a repetition. */
export interface Identity {
  /** Of where an event came in, and its id there. */
  readonly key: string;
  /** Of its bytes. */
  readonly digest: string;
  /** Its id alone, as older journals knew it. */
  former(): string;
}

/**
 * `new`: never seen within the window. `repeated`: the same id with the same bytes. `reused`: the id is known, with other
 * bytes; seen again with those, it is `repeated`.
 */
export type Seen = 'new' | 'repeated' | 'reused';

/** Makes the memory what the transaction has made the database; to be called once that is committed. */
type Apply<T = void> = () => T;

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
  readonly #insertSealed;
  readonly #findSealed;
  #recent = new Map<string, Known>();
  #sealing: Sealing | null = null;
  readonly #sealed = new Map<number, { lastAt: number; filter: BloomFilter }>();
  /** Added since the last commit, and of these, what has no record. */
  #added: string[] = [];
  #aside: string[] = [];
  /** Rows whose ids are known better by now. */
  #stale: number[] = [];
  #nextGeneration = 1;
  #nextRow = 1;
  #lastAt = 0;
  /** Until then ids of an older journal may still count. */
  readonly #formerUntil: number;
  readonly #window: number;
  readonly #size: number;
  #savedUpTo: number;

  /** @param window milliseconds an id is remembered */
  constructor(db: Database.Database, window: number, generationSize: number = GENERATION) {
    this.#db = db;
    this.#window = window;
    this.#size = generationSize;
    this.#insertRecent = db.prepare('INSERT INTO recent_ids (n, hash, at) VALUES (?, ?, ?)');
    this.#deleteRecent = db.prepare('DELETE FROM recent_ids WHERE n = ?');
    // A generation that was begun before a restart is begun anew, and ages are told from its newest.
    this.#insertSealed = db.prepare(
      'INSERT OR REPLACE INTO sealed_ids (generation, hash, age) VALUES (?, ?, ?)',
    );
    this.#findSealed = db.prepare(
      'SELECT hash, age FROM sealed_ids WHERE generation = ? AND hash >= ? AND hash < ?',
    );
    const noted = db.prepare('SELECT value FROM checkpoints WHERE key = ?').pluck();
    const before = noted.get(IDS_OF_BEFORE);
    this.#formerUntil = before === undefined ? 0 : Number(before) + window;
    this.#savedUpTo = Number(noted.get(SAVED_UP_TO) ?? 0);
    this.#load();
  }

  /** The newest event whose id, and those of all before it, need not be looked for in the segments. */
  get savedUpTo(): number {
    return this.#savedUpTo;
  }

  #load(): void {
    for (const row of this.#db.prepare('SELECT generation, last_at, filter FROM generations').iterate()) {
      const { generation, last_at, filter } = row as { generation: number; last_at: number; filter: Buffer };
      this.#sealed.set(generation, { lastAt: last_at, filter: BloomFilter.from(filter) });
      this.#nextGeneration = Math.max(this.#nextGeneration, generation + 1);
    }
    for (const row of this.#db.prepare('SELECT n, hash, at FROM recent_ids ORDER BY n').iterate()) {
      const { n, hash: entry, at } = row as { n: number; hash: Buffer; at: number };
      this.#note(entry.toString('latin1', 0, KEY_BYTES), { digest: digestIn(entry), at, seq: 0, row: n });
    }
  }

  /** An id as the record of its event has it. @param at since when it counts, milliseconds since the epoch */
  restore({ key, digest }: Pick<Identity, 'key' | 'digest'>, seq: number, at: number): void {
    this.#note(key, { digest, at, seq, row: 0 });
  }

  /**
   * What is not `repeated` is remembered, until `takeBack` or for good.
   * @param now milliseconds since the epoch
   * @param seq which its event gets if it is `new`; 0 for one that has no record
   */
  add({ key, digest, former }: Identity, now: number, seq: number): Seen {
    const known = this.#find(key, now);
    if (known === null) {
      if (now <= this.#formerUntil && this.#find(former(), now)?.digest === null) return 'repeated';
      this.#remember(key, { digest, at: now, seq, row: 0 });
      return 'new';
    }
    if (known.digest === digest) return 'repeated';
    const other = digestOf(`${key}${digest}`);
    if (this.#find(other, now) !== null) return 'repeated';
    this.#remember(other, { digest, at: now, seq: 0, row: 0 });
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
   * Writes rows of a full generation, if there is one. Inside a transaction.
   * @param lastSeq the newest event
   * @returns whether there is more to do
   */
  advance(rows: number, lastSeq: number): Apply<boolean> {
    if (this.#sealing === null && this.#recent.size >= this.#size) this.#beginSealing(lastSeq);
    return this.#sealing === null ? () => false : this.#seal(this.#sealing, rows);
  }

  /**
   * Makes sure that the ids of all events up to a seq stay without their records, as far as they still count. Inside a
   * transaction.
   */
  keep(upTo: number, now: number): Apply {
    if (upTo <= this.#savedUpTo) return () => undefined;
    const sealed = this.#sealing === null ? null : this.#seal(this.#sealing, Infinity);
    const oldest = now - this.#window;
    const keys = [...this.#recent].filter(([, { seq, row, at }]) => {
      return row === 0 && seq <= upTo && at >= oldest;
    });
    const rows = this.#insertRows(keys.map(([key]) => key));
    const savedUpTo = Math.max(upTo, this.#sealing?.lastSeq ?? 0);
    this.#saveUpTo(savedUpTo);
    return () => {
      sealed?.();
      this.#haveRows(rows);
      this.#savedUpTo = savedUpTo;
    };
  }

  /** Clears away a bounded amount of what is older than the window. Inside a transaction. @returns whether there may be more */
  expire(now: number): Apply<boolean> {
    const before = now - this.#window;
    for (const [generation, { lastAt }] of this.#sealed) {
      if (lastAt >= before) continue;
      const { changes } = this.#db
        .prepare(
          'DELETE FROM sealed_ids WHERE generation = ? AND hash IN (SELECT hash FROM sealed_ids WHERE generation = ? LIMIT 5000)',
        )
        .run(generation, generation);
      if (changes > 0) return () => true;
      this.#db.prepare('DELETE FROM generations WHERE generation = ?').run(generation);
      return () => this.#sealed.delete(generation);
    }
    return this.#expireRecent(before);
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
    const near = this.#recent.get(key) ?? this.#sealing?.members.get(key);
    if (near !== undefined && near.at >= oldest) return near;
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

  #remember(key: string, known: Known): void {
    this.#note(key, known);
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

  #beginSealing(lastSeq: number): void {
    const members = this.#recent;
    const buckets = Array.from({ length: 256 }, (): string[] => []);
    for (const key of members.keys()) buckets[key.charCodeAt(0)]?.push(key);
    this.#sealing = {
      generation: this.#nextGeneration,
      buckets,
      members,
      lastAt: this.#lastAt,
      lastSeq,
      filter: BloomFilter.sized(members.size),
      done: 0,
    };
    this.#nextGeneration += 1;
    this.#recent = new Map();
  }

  /** Whole buckets until `rows` are written or none is left; then the generation is complete. */
  #seal(sealing: Sealing, rows: number): Apply<boolean> {
    const { generation, buckets, members, filter, lastAt, lastSeq } = sealing;
    let { done } = sealing;
    for (let written = 0; written < rows && done < buckets.length; done += 1) {
      const keys = buckets[done]?.sort() ?? [];
      for (const key of keys) {
        const known = members.get(key);
        const entry = Buffer.from(key + (known?.digest ?? ''), 'latin1');
        filter.add(entry.readUInt32LE(0), entry.readUInt32LE(4));
        this.#insertSealed.run(generation, entry, lastAt - (known?.at ?? lastAt));
      }
      written += keys.length;
    }
    if (done < buckets.length)
      return () => {
        sealing.done = done;
        return true;
      };
    this.#db
      .prepare('INSERT INTO generations (generation, last_at, ids, filter) VALUES (?, ?, ?, ?)')
      .run(generation, lastAt, members.size, filter.bytes);
    for (const { row } of members.values()) if (row > 0) this.#deleteRecent.run(row);
    const savedUpTo = Math.max(this.#savedUpTo, lastSeq);
    this.#saveUpTo(savedUpTo);
    return () => {
      this.#sealed.set(generation, { lastAt, filter });
      this.#sealing = null;
      this.#savedUpTo = savedUpTo;
      return this.#recent.size >= this.#size;
    };
  }

  #saveUpTo(seq: number): void {
    this.#db.prepare('INSERT OR REPLACE INTO checkpoints VALUES (?, ?)').run(SAVED_UP_TO, String(seq));
  }
}

/** Where the database notes when it was one that knew ids only, milliseconds since the epoch. */
export const IDS_OF_BEFORE = 'ids-of-before';
/** Where it notes the newest event whose id, and those of all before it, are in its tables as far as they count. */
export const SAVED_UP_TO = 'ids-saved-up-to';

/** Above any digest. */
const LAST = Buffer.alloc(DIGEST_BYTES + 1, 0xff);

/**
 * What stands for where an event came in and its id there, a character for each byte: two of 2^32 meet with a chance of
 * 2^-33, and none can be made to fit. Twelve, because V8 copies a piece of a string that is so short, and keeps the whole of
 * a longer one.
 */
export function digestOf(data: string | Uint8Array, length: number = KEY_BYTES): string {
  return hash('sha256', data, 'binary').slice(0, length);
}

/** What stands for the bytes of an event: to make another body fit a given one takes 2^64 tries. */
export function bodyDigestOf(body: Uint8Array): string {
  return digestOf(body, DIGEST_BYTES);
}

/** Of what is stored of an event; null in older journals. */
function digestIn(entry: Buffer): string | null {
  return entry.length < KEY_BYTES + DIGEST_BYTES ? null : entry.toString('latin1', KEY_BYTES);
}
