import type Database from 'better-sqlite3';
import { Owners, type Subject } from '../core/erasure.ts';
import { USER_MALFORMED } from '../core/ingest.ts';
import type { AsideEntries } from './aside-entries.ts';
import type { Checkpoints } from './checkpoints.ts';
import { bodyDigestIn, bodyHashOf, digestOf, type SeenIds } from './dedup.ts';
import type { DroppedLetters } from './dropped-letters.ts';
import type { ErasedAlone } from './erased-alone.ts';
import { entryOfSeq } from './receipt-entries.ts';
import { eraseGaps, eraseRecords, ownedAfter, type KnownBy } from './segments/erasing.ts';
import type { Apply } from './sealed-ids.ts';
import { identityOf } from './segments/records.ts';
import type { SegmentLog } from './segments/log.ts';
import type { Transactions } from './transactions.ts';

/** Events or rows looked at in one step: a few milliseconds, so that deliveries hardly wait. */
const SLICE = 2000;
/** A journal up to this size is rebuilt in a few seconds, which senders do not notice. */
const REBUILD_BYTES = 256 * 2 ** 20;
/** Free pages overwritten in one transaction. */
const SCRUB_PAGES = 2000;
const COUNTS = 'erasure/';
/** Of the log of receipts, base64. */
const ENTRIES = 'erasure-entries/';
/** Events that are counted as erased, and about to be. */
const INTENT = 'erasing';

/** Records taken out, by table. */
export interface ErasedCounts {
  readonly events: number;
  readonly quarantine: number;
  readonly dead_letters: number;
}

/** One step of an erasure; the next one is asked for until there is none. */
export type EraseStep =
  // First: what is retried from there while events are looked at would stand behind the last of them.
  | { readonly do: 'setAside' }
  | { readonly do: 'events'; readonly after: number; readonly upTo: number }
  // A segment at a time: each byte may have to be read.
  | { readonly do: 'gaps'; readonly from: number }
  | { readonly do: 'scrub'; /** Nobody waits for this journal. */ readonly alone: boolean }
  /** The receipt has them. */
  | { readonly do: 'forget' };

type Table = 'quarantine' | 'dead_letters';
const KIND = { quarantine: 'quarantine', dead_letters: 'dead-letters' } as const;
type Row = [
  key: number,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  id: string,
  headers: string,
  /** Null where the envelope says whose it is. */
  body: Buffer | null,
];

/** Where the envelope does not say whose an event is: what stands as the user of an invalid one may be no id. */
const NAMES_NOBODY: Readonly<Record<Table, string>> = {
  dead_letters: 'user IS NULL',
  // Nor what stands in a record that is not what was written.
  quarantine: `user IS NULL OR reasons LIKE '%"${USER_MALFORMED}"%' OR reasons LIKE '%"damaged"%'`,
};

export interface EraserParts {
  readonly db: Database.Database;
  readonly transactions: Transactions;
  readonly checkpoints: Checkpoints;
  readonly log: SegmentLog;
  readonly asideEntries: AsideEntries;
  readonly dropped: DroppedLetters;
  readonly seen: Pick<SeenIds, 'forget'>;
  readonly alone: Pick<ErasedAlone, 'letters' | 'waiting'>;
}

/**
 * Takes users out of the journal so that no byte of theirs stays in its files.
 *
 * An event is overwritten where it stands, and keeps its place: it goes to no sink, and retention clears it away. Which
 * ones, is noted in the transaction that counts them; whoever opens the journal after a crash does it again.
 */
export class Eraser {
  readonly #db: Database.Database;
  readonly #transactions: Transactions;
  readonly #rebuildBytes: number;
  readonly #checkpoints: Checkpoints;
  readonly #log: SegmentLog;
  readonly #asideEntries: AsideEntries;
  readonly #dropped: DroppedLetters;
  readonly #seen: EraserParts['seen'];
  readonly #alone: EraserParts['alone'];
  #heldBytes = 0;

  /** @param rebuildBytes size up to which the database is rebuilt while deliveries wait; above, free pages are written over */
  constructor(
    { db, transactions, checkpoints, log, asideEntries, dropped, seen, alone }: EraserParts,
    rebuildBytes = REBUILD_BYTES,
  ) {
    this.#asideEntries = asideEntries;
    this.#dropped = dropped;
    this.#seen = seen;
    this.#alone = alone;
    this.#db = db;
    this.#transactions = transactions;
    this.#rebuildBytes = rebuildBytes;
    this.#checkpoints = checkpoints;
    this.#log = log;
    this.#finish();
    // Left by a process that was ended in the middle.
    db.exec('DROP TABLE IF EXISTS scrub');
  }

  /** Bytes of free pages that are taken up for the moment: as good as free to whoever asks how full the journal is. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @returns the step that follows, or null after the last */
  perform(subjects: readonly Subject[], step: EraseStep): EraseStep | null {
    // Zeros over what is deleted, in free pages too; FAST, the mode of every day, leaves those.
    this.#db.pragma('secure_delete = ON');
    try {
      switch (step.do) {
        case 'events':
          return this.#events(subjects, step);
        case 'setAside':
          this.#setAside(subjects);
          return { do: 'events', after: 0, upTo: this.#log.lastSeq };
        case 'gaps': {
          const next = eraseGaps(this.#log, new Owners(subjects), step.from, (known) => this.#forget(known));
          return next === null ? { do: 'scrub', alone: false } : { do: 'gaps', from: next };
        }
        case 'scrub':
          return this.#scrub(step.alone) ? step : null;
        case 'forget':
          this.#transactions.run(() => {
            for (const { request } of subjects)
              for (const key of [COUNTS, ENTRIES]) this.#checkpoints.remove(key + request);
          });
          return null;
        default:
          return step satisfies never;
      }
    } finally {
      this.#db.pragma('secure_delete = FAST');
    }
  }

  /** Counted in the transaction that took them out, so that a crash neither loses nor doubles any. */
  counts(request: string): ErasedCounts {
    const value = this.#checkpoints.load(COUNTS + request);
    return value === null ? NOTHING : (JSON.parse(value) as ErasedCounts);
  }

  /** What the log of receipts has of the events that were taken out. */
  entries(request: string): readonly string[] {
    const value = this.#checkpoints.load(ENTRIES + request);
    return value === null ? [] : (JSON.parse(value) as string[]);
  }

  #events(subjects: readonly Subject[], { after, upTo }: EraseStep & { do: 'events' }): EraseStep {
    const owners = new Owners(subjects);
    const { owned, last } = ownedAfter(this.#log, owners, after, SLICE);
    if (owned.length > 0) {
      this.#transactions.run(() => {
        this.#count('events', owned);
        this.#alone.waiting(owned.map(({ seq }) => seq));
        this.#noteEntries(owned, ({ seq }) => entryOfSeq(this.#log, seq)?.toString('base64'));
        this.#checkpoints.save(INTENT, JSON.stringify(owned.map(({ seq }) => seq)));
      });
      this.#finish();
    }
    if (last !== null && last < upTo) return { do: 'events', after: last, upTo };
    // What was not looked at yet may have been copied there: a damaged record that was read, or what waited for a sink.
    this.#setAside(subjects);
    return { do: 'gaps', from: this.#log.firstSeq };
  }

  /** @param entryOf base64; nothing where the log has none */
  #noteEntries<T extends { readonly requests: readonly string[] }>(
    owned: readonly T[],
    entryOf: (one: T) => string | undefined,
  ): void {
    const found = owned.flatMap((one) => {
      const entry = entryOf(one);
      return entry === undefined ? [] : one.requests.map((request) => ({ request, entry }));
    });
    for (const [request, own] of Map.groupBy(found, (one) => one.request)) {
      // A dead letter is an event of the segments, too.
      const all = new Set([...this.entries(request), ...own.map(({ entry }) => entry)]);
      this.#checkpoints.save(ENTRIES + request, JSON.stringify([...all]));
    }
  }

  /** Overwrites what has been counted. */
  #finish(): void {
    const text = this.#checkpoints.load(INTENT);
    if (text === null) return;
    eraseRecords(this.#log, JSON.parse(text) as number[]);
    this.#checkpoints.remove(INTENT);
  }

  #setAside(subjects: readonly Subject[]): void {
    const forgotten = this.#transactions.run(() => {
      // Earlier programs noted ids.
      this.#dropped.hashAll();
      this.#db.prepare('UPDATE damaged SET id = NULL WHERE id IS NOT NULL').run();
      return (['quarantine', 'dead_letters'] as const).flatMap((table) =>
        this.#eraseSetAside(subjects, table),
      );
    });
    for (const apply of forgotten) apply();
  }

  #forget(known: readonly KnownBy[]): void {
    this.#transactions.run(() => this.#seen.forget(known))();
  }

  /** @returns to be called when it is committed */
  #eraseSetAside(subjects: readonly Subject[], table: Table): Apply[] {
    const forgotten: Apply[] = [];
    const remove = this.#db.prepare(`DELETE FROM ${table} WHERE key = ?`);
    for (let after: number | null = 0; after !== null;) {
      const found = this.#find(subjects, table, after);
      const keys = found.owned.map(({ key }) => key);
      const entries = this.#asideEntries.of(KIND[table], keys);
      this.#noteEntries(found.owned, ({ key }) => entries.get(key));
      forgotten.push(this.#seen.forget(this.#knownBy(table, keys)));
      if (table === 'dead_letters') this.#alone.letters(keys);
      for (const key of keys) remove.run(key);
      this.#count(table, found.owned);
      after = found.last;
    }
    return forgotten;
  }

  /** By what these rows are known as they came in; what a source gives another identity than its id is not found by it. */
  #knownBy(table: Table, keys: readonly number[]): KnownBy[] {
    const select = this.#db.prepare(`SELECT source, id, body FROM ${table} WHERE key = ?`).raw();
    return keys.map((key) => {
      const [source, id, body] = select.get(key) as [string, string, Buffer];
      return { key: digestOf(identityOf(source, id)), digest: bodyDigestIn(bodyHashOf(body)) };
    });
  }

  /** The subjects' rows among the next ones, and the last key looked at; null when there were no more. */
  #find(
    subjects: readonly Subject[],
    table: Table,
    after: number,
  ): { owned: { key: number; requests: readonly string[] }[]; last: number | null } {
    const owners = new Owners(subjects);
    // A body is read only where the envelope does not say whose it is: bodies are nearly all of the file.
    const rows = this.#db
      .prepare(
        `SELECT key, team, user, client_user, id, headers, CASE WHEN ${NAMES_NOBODY[table]} THEN body END
         FROM ${table} WHERE key > ? ORDER BY key LIMIT ${SLICE}`,
      )
      .raw()
      .iterate(after) as IterableIterator<Row>;
    const owned: { key: number; requests: readonly string[] }[] = [];
    let last: number | null = null;
    // Row by row: a slice of large bodies would not fit in memory.
    for (const [at, team, user, clientUser, id, headers, body] of rows) {
      const whose = { team, user, clientUser };
      const requests =
        body === null
          ? owners.of(whose)
          : owners.ofEvent({ ...whose, id, headers: { all: headers }, body }, true);
      if (requests.length > 0) owned.push({ key: at, requests });
      last = at;
    }
    return { owned, last };
  }

  #count(table: keyof ErasedCounts, owned: readonly { readonly requests: readonly string[] }[]): void {
    const added = new Map<string, number>();
    for (const request of owned.flatMap(({ requests }) => requests)) {
      added.set(request, (added.get(request) ?? 0) + 1);
    }
    for (const [request, count] of added) {
      const before = this.counts(request);
      const counts = { ...before, [table]: before[table] + count };
      this.#checkpoints.save(COUNTS + request, JSON.stringify(counts));
    }
  }

  /**
   * Leaves no old copy of a row in the file: rebuilds it, or, where that would hold up deliveries for long, writes over
   * the free pages. Then empties the log that has the pages as they were. True when there is more to do.
   */
  #scrub(alone: boolean): boolean {
    const pages = Number(this.#db.pragma('page_count', { simple: true }));
    const pageSize = Number(this.#db.pragma('page_size', { simple: true }));
    const rebuilt = (alone || pages * pageSize <= this.#rebuildBytes) && this.#rebuild();
    const more = !rebuilt && this.#overwriteFree(pageSize);
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    return more;
  }

  /** False when the disk has no room for it. */
  #rebuild(): boolean {
    try {
      this.#db.exec('VACUUM');
      return true;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'SQLITE_FULL') return false;
      throw error;
    }
  }

  /** Takes up free pages with zeros, a slice at a time, and gives all of them back when there is none left. */
  #overwriteFree(pageSize: number): boolean {
    const free = (): number => Number(this.#db.pragma('freelist_count', { simple: true }));
    const before = free();
    const more = this.#transactions.run(() => {
      this.#db.exec('CREATE TABLE IF NOT EXISTS scrub (zeros BLOB NOT NULL)');
      const insert = this.#db.prepare('INSERT INTO scrub VALUES (zeroblob(?))');
      const bulk = Math.min(before, SCRUB_PAGES) - SINGLY;
      if (bulk > 0) insert.run(bulk * (pageSize - OVERFLOW_LINK));
      if (free() > SINGLY) return true;
      // The last ones page by page, to the very last: the file may grow by a page or two, of zeros.
      while (free() > 0) insert.run(pageSize - ROW_OVERHEAD);
      this.#db.exec('DROP TABLE scrub');
      return false;
    });
    this.#heldBytes = more ? this.#heldBytes + (before - free()) * pageSize : 0;
    return more;
  }
}

const NOTHING: ErasedCounts = { events: 0, quarantine: 0, dead_letters: 0 };
/** Free pages that are taken up one by one: the table needs some for itself. */
const SINGLY = 8;
/** Bytes of an overflow page that are not content. */
const OVERFLOW_LINK = 4;
/** Bytes of a page that a row which has it for itself leaves free. */
const ROW_OVERHEAD = 100;
