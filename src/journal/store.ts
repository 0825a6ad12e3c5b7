import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import { ID_REUSED, type InvalidReason } from '../core/ingest.ts';
import type { DeadLetterBatch, JournalAccount, JournalStatus, Selection } from '../core/journal.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import { Checkpoints } from './checkpoints.ts';
import { Cursors } from './cursors.ts';
import { openDatabase, sqliteCode } from './database.ts';
import { SeenIds } from './dedup.ts';
import { Eraser } from './erase.ts';
import { EventReader, type DamagedRecord } from './event-reader.ts';
import { Events } from './events.ts';
import { LedgerReader } from './ledger-reader.ts';
import { SetAside } from './set-aside.ts';
import type { PageLimits, ReadPage } from './page-reader.ts';
import type { JournalOptions } from './protocol.ts';
import { RouteRecords } from './route-records.ts';
import { bodiesOf, type Packed } from './rows.ts';
import { Space } from './space.ts';

/** Events of one commit, and what to do with each besides storing it. */
export interface Batch extends Packed {
  /** Reasons as JSON for an event that goes to quarantine; null for one that goes to the journal proper. */
  readonly invalid: readonly (string | null)[];
  /** What stands for the id within the source; the event's id when left out. */
  readonly keys: readonly (string | undefined)[];
}

/** A record that is not what was written. */
export interface Damage {
  readonly seq: number;
  readonly id: string | null;
}

/** What became of an event of a batch, beside its seq. */
export const APPENDED = { duplicate: 0, quarantined: -1, reused: -2 } as const;

/** Milliseconds without another try after the disk was full. */
const FULL_PAUSE = 500;

/**
 * The journal's tables, synchronous, inside the writer thread, where the main thread calls this and its parts
 * (`Remote<Store>`). Every call is one transaction; what it has returned from is on disk. `now`: milliseconds since the
 * epoch.
 */
export class Store {
  readonly #db: Database.Database;
  readonly #options: JournalOptions;
  readonly #begin;
  readonly #commit;
  readonly #seen: SeenIds;
  readonly #events: Events;
  readonly #reader: EventReader;
  readonly #space: Space;
  readonly checkpoints: Checkpoints;
  readonly cursors: Cursors;
  readonly eraser: Eraser;
  readonly ledger: LedgerReader;
  readonly setAside: SetAside;
  readonly routes: RouteRecords;
  #fullUntil = 0;

  constructor(options: JournalOptions) {
    const db = openDatabase(options.path, options.create);
    const transaction = <T>(work: () => T): T => this.#transaction(work);
    this.#db = db;
    this.#options = options;
    // Prepared once: they run with each commit, and to compile them takes longer than to run them.
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#seen = new SeenIds(db, options.dedupWindow);
    this.#events = new Events(db);
    this.#reader = new EventReader(db);
    this.#space = new Space(db, options, () => this.eraser.heldBytes);
    this.checkpoints = new Checkpoints(db);
    this.ledger = new LedgerReader(db, this.checkpoints);
    this.routes = new RouteRecords(this.checkpoints);
    const { ledger, routes } = this;
    this.cursors = new Cursors(db, transaction, { ledger, routes, events: this.#events });
    this.setAside = new SetAside(db, (row, body) => this.#events.put(row, body));
    this.eraser = new Eraser(db, transaction);
  }

  get lastSeq(): number {
    return this.#events.lastSeq;
  }

  /**
   * @returns the seq of each, or one of `APPENDED`
   * @throws MillraceError journal_full when the limit is reached and nothing settled can make room.
   */
  append(batch: Batch, now: number): readonly number[] {
    if (now < this.#fullUntil)
      throw new MillraceError('journal_full', `no space left for ${this.#options.path}`);
    this.#makeRoom(now);
    const bodies = bodiesOf(batch);
    return this.#transaction(() => {
      let added = 0;
      const answers = batch.rows.map((row, index) => {
        const body = bodies[index] as Buffer;
        const seen = this.#seen.add({ source: row[1], id: batch.keys[index] ?? row[0], body }, now);
        if (seen === 'repeated') {
          this.ledger.counts.add('duplicates', row[6]);
          return APPENDED.duplicate;
        }
        added += 1;
        const invalid = batch.invalid[index] ?? null;
        const kept = seen === 'new' ? invalid : withReuse(invalid);
        this.ledger.counts.add(kept === null ? countedAs(row[8]) : 'quarantined', row[6]);
        if (kept === null) return this.#events.put(row, body);
        this.setAside.quarantine(kept, row, body);
        return seen === 'reused' ? APPENDED.reused : APPENDED.quarantined;
      });
      this.#seen.advance(added);
      this.ledger.counts.save();
      return answers;
    }, now);
  }

  /**
   * Records that are damaged are noted, and what can be read of them goes to quarantine, where a person sees it.
   * @returns beside the page the records that were found so by this read, for the first time
   */
  read(after: number, limits: PageLimits, now: number): ReadPage & { readonly damaged: readonly Damage[] } {
    const found: DamagedRecord[] = [];
    const page = this.#reader.read(after, this.lastSeq, limits, (record) => found.push(record));
    return { ...page, damaged: found.length === 0 ? [] : this.#noteDamage(found, now) };
  }

  /** What is appended from now on was accepted under these routes. */
  acceptUnder(routes: readonly Route[]): RouteRecord {
    return this.#transaction(() => this.routes.accept(routes, this.lastSeq, this.#events.firstSeq));
  }

  /** Makes dead letters of what waits for a sink, up to a seq, and moves its cursor there. */
  addDeadLetters({ sink, upTo, letters }: DeadLetterBatch): number {
    this.#transaction(() => {
      for (const letter of letters) this.setAside.addCopy(sink, letter);
      this.cursors.write(sink, upTo);
    });
    this.cursors.note(sink, upTo);
    return letters.length;
  }

  /** @returns the newest seq */
  release(key: number, event: Packed): number {
    return this.#transaction(() => {
      const { changes } = this.#db.prepare('DELETE FROM quarantine WHERE key = ?').run(key);
      const row = event.rows[0];
      if (changes > 0 && row !== undefined) {
        this.ledger.counts.add('released', row[6]);
        this.ledger.counts.save();
        for (const body of bodiesOf(event)) this.#events.put(row, body);
      }
      return this.lastSeq;
    });
  }

  retryDeadLetters(selection: Selection): { readonly count: number; readonly lastSeq: number } {
    const end = this.lastSeq;
    const { count, sinks } = this.#transaction(() => {
      const retried = this.setAside.retry(selection);
      // A sink that had left begins in front of them, and not behind, when it opens again.
      for (const sink of retried.sinks) this.cursors.place(sink, end);
      return retried;
    });
    for (const sink of sinks) this.cursors.placed(sink, end);
    return { count, lastSeq: this.lastSeq };
  }

  /** Clears away a bounded amount of what is past its time; true when there is more. */
  maintain(now: number): boolean {
    return this.#transaction(() => {
      const expired = this.#seen.expire(now);
      return this.#events.clear(this.cursors.settled(), now - this.#options.retention).more || expired;
    });
  }

  status(now: number): JournalStatus {
    const count = (table: string): number =>
      Number(this.#db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    const { firstSeq, lastSeq } = this.#events;
    const { path, maxBytes } = this.#options;
    return {
      path,
      events: lastSeq - firstSeq + 1,
      firstSeq,
      lastSeq,
      bytes: this.#space.bytes(),
      maxBytes,
      quarantined: count('quarantine'),
      deadLetters: count('dead_letters'),
      damaged: count('damaged'),
      cursors: this.cursors.known().map(([sink, seq]) => this.#events.behind(sink, seq, now)),
    };
  }

  /** Counts events of erased users, which leave nothing else. */
  countErased(receivedAt: readonly number[]): void {
    this.#transaction(() => {
      for (const at of receivedAt) this.ledger.counts.add('erased', at);
      this.ledger.counts.save();
    });
  }

  /** What has been counted, and how far each sink is: all of one moment. */
  account(since: number, until: number): JournalAccount {
    const { firstSeq, lastSeq } = this.#events;
    const { all: cursors } = this.cursors;
    return { firstSeq, lastSeq, cursors, routes: this.routes.read(), ...this.ledger.account(since, until) };
  }

  close(): void {
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    this.#db.close();
  }

  #transaction<T>(work: () => T, now = 0): T {
    const { end } = this.#events;
    this.#begin.run();
    try {
      const value = work();
      this.#commit.run();
      this.#seen.committed();
      return value;
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
      this.#events.end = end;
      this.#seen.rolledBack();
      this.ledger.counts.rolledBack();
      // A full disk is asked again now and then, not by each of a thousand requests a second.
      if (sqliteCode(error) === 'SQLITE_FULL') this.#fullUntil = now + FULL_PAUSE;
      throw error;
    }
  }

  /** Each is noted once, however many sinks come across it; returns those that were new. */
  #noteDamage(found: readonly DamagedRecord[], now: number): readonly Damage[] {
    const note = this.#db.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?, ?)');
    return this.#transaction(() =>
      found.flatMap(({ seq, row, body }) => {
        const id = row?.[0] ?? null;
        if (note.run(seq, id, now).changes === 0) return [];
        const detail = `journal record ${seq} is damaged`;
        if (row !== null) this.setAside.quarantine(JSON.stringify([{ code: 'damaged', detail }]), row, body);
        return [{ seq, id }];
      }),
    );
  }

  /** When space is short, what is settled goes before its retention is over; an unsettled event never does. */
  #makeRoom(now: number): void {
    for (let shortage = this.#space.shortage(); shortage !== null; shortage = this.#space.shortage()) {
      const { count } = this.#transaction(() => this.#events.clear(this.cursors.settled()), now);
      if (count === 0) throw new MillraceError('journal_full', shortage);
    }
  }
}

/** Reasons as JSON, with that of the id in front. */
function withReuse(invalid: string | null): string {
  return JSON.stringify([ID_REUSED, ...(invalid === null ? [] : (JSON.parse(invalid) as InvalidReason[]))]);
}

/** A replay sends again what was counted when it came. */
function countedAs(handling: string | null): 'accepted' | 'replayed' {
  return handling?.includes('"replayId"') === true ? 'replayed' : 'accepted';
}
