import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import type {
  DeadLetterBatch,
  EventHead,
  JournalAccount,
  JournalStatus,
  Selection,
} from '../core/journal.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import { Appending, type Batch } from './appending.ts';
import { carryOver } from './carry-over.ts';
import { Checkpoints } from './checkpoints.ts';
import { Cursors } from './cursors.ts';
import { openDatabase, sqliteCode } from './database.ts';
import { SeenIds } from './dedup.ts';
import { Eraser } from './erase.ts';
import { Events, type Consumed } from './events.ts';
import { Tally } from './hour-counts.ts';
import { LedgerReader } from './ledger-reader.ts';
import type { JournalOptions } from './protocol.ts';
import { RouteRecords } from './route-records.ts';
import { NO_ID, partsAt } from './segments/format.ts';
import { behind, headsAfter, idsAfter } from './segments/ledger.ts';
import { pageAfter, rowOf, type DamagedRecord, type PageLimits } from './segments/pages.ts';
import { encodeRecords, type Page } from './segments/records.ts';
import { SetAside } from './set-aside.ts';
import { segmentBytesFor, Space } from './space.ts';

/** A record that is not what was written. */
export interface Damage {
  readonly seq: number;
  readonly id: string | null;
}

/** Milliseconds without another try after the disk was full. */
const FULL_PAUSE = 500;
/** Ids sealed in one transaction: about two milliseconds. */
const SEAL = 1024;
/** Segments begun within the time that settled events are kept: what is past it goes with the last of its segment. */
const SEGMENTS_KEPT = 16;

/**
 * The journal, synchronous, inside the writer thread, where the main thread calls this and its parts (`Remote<Store>`): the
 * events in segments, and what is derived or changes rarely in the tables of a database. What a call has returned from is
 * on disk. `now`: milliseconds since the epoch.
 */
export class Store {
  readonly #db: Database.Database;
  readonly #options: JournalOptions;
  readonly #begin;
  readonly #commit;
  readonly #seen: SeenIds;
  readonly #events: Events;
  readonly #appending: Appending;
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
    // Prepared once: to compile them takes longer than to run them.
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.checkpoints = new Checkpoints(db);
    const { checkpoints } = this;
    const where = { path: options.path, segmentBytes: segmentBytesFor(options) };
    carryOver(db, where, Date.now());
    this.#events = new Events(db, checkpoints, where);
    const { log } = this.#events;
    this.#seen = new SeenIds(db, options.dedupWindow);
    idsAfter(log, this.#seen.savedUpTo, (id, seq, at) => this.#seen.restore(id, seq, at));
    this.#space = new Space(
      db,
      options,
      () => log.bytes,
      () => this.eraser.heldBytes,
    );
    this.ledger = new LedgerReader(db, checkpoints, this.#events);
    this.routes = new RouteRecords(checkpoints);
    const { ledger, routes } = this;
    this.cursors = new Cursors(db, transaction, { ledger, routes, events: this.#events });
    this.setAside = new SetAside(db);
    this.eraser = new Eraser({ db, transaction, checkpoints, log });
    const { setAside } = this;
    this.#appending = new Appending({ transaction, events: this.#events, seen: this.#seen, setAside });
    // What a crash has left undone.
    if (this.#events.consumed.length > 0) this.#save();
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
    return this.#noticingFull(now, () => this.#appending.append(batch, now));
  }

  /**
   * Records that are damaged are noted, and what can be read of them goes to quarantine, where a person sees it.
   * @returns beside the page the records that were found so by this read, for the first time
   */
  read(after: number, limits: PageLimits, now: number): Page & { readonly damaged: readonly Damage[] } {
    const found: DamagedRecord[] = [];
    const { firstSeq, places, records } = pageAfter(this.#events.log, after, limits, (one) =>
      found.push(one),
    );
    return { firstSeq, places, records, damaged: found.length === 0 ? [] : this.#noteDamage(found, now) };
  }

  /** Heads of the events after `after` in order, as many as an answer should hold; none at the end. */
  heads(after: number): readonly EventHead[] {
    return headsAfter(this.#events.log, after);
  }

  /** What is appended from now on was accepted under these routes. */
  acceptUnder(routes: readonly Route[]): RouteRecord {
    return this.#transaction(() => this.routes.accept(routes, this.lastSeq, this.#events.firstSeq));
  }

  /** Makes dead letters of what waits for a sink, up to a seq, and moves its cursor there. */
  addDeadLetters({ sink, upTo, letters }: DeadLetterBatch): number {
    this.#transaction(() => {
      for (const letter of letters) {
        // What cannot be read was told as damaged when it was looked at for this.
        const found = rowOf(this.#events.log, letter.seq);
        if (found !== null) this.setAside.addRow({ ...letter, sink, attempts: 0 }, found.row, found.body);
      }
      this.cursors.write(sink, upTo);
    });
    this.cursors.note(sink, upTo);
    return letters.length;
  }

  /** @param batch the event as it is released @returns the newest seq */
  release(key: number, { records }: Pick<Batch, 'records'>, now: number): number {
    if (this.setAside.has('quarantine', key))
      this.#putBack(records, { table: 'quarantine', keys: [key] }, now);
    return this.lastSeq;
  }

  /** Puts letters back at the end of the journal, for the target that refused them and no other. */
  retryDeadLetters(selection: Selection, now: number): { readonly count: number; readonly lastSeq: number } {
    let count = 0;
    for (;;) {
      const { keys, events } = this.setAside.toRetry(selection);
      if (keys.length === 0) return { count, lastSeq: this.lastSeq };
      this.#putBack(encodeRecords(events), { table: 'dead_letters', keys }, now);
      count += keys.length;
    }
  }

  /** Clears away a bounded amount of what is past its time, and what can be done later than a commit; true when there is more. */
  maintain(now: number): boolean {
    const { retention } = this.#options;
    const { log } = this.#events;
    const isSealing = this.#transaction(() => this.#seen.advance(SEAL, log.lastSeq))();
    const isExpiring = this.#transaction(() => this.#seen.expire(now))();
    if (log.isDue(now - retention / SEGMENTS_KEPT)) log.roll();
    if (this.#events.isUnsaved) this.#save();
    return this.#clear(now, now - retention) || isExpiring || isSealing;
  }

  status(now: number): JournalStatus {
    const count = (table: string): number =>
      Number(this.#db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    const { firstSeq, lastSeq, log } = this.#events;
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
      cursors: this.cursors.known().map(([sink, seq]) => behind(log, sink, seq, now)),
    };
  }

  /** Counts events of erased users, which leave nothing else. */
  countErased(receivedAt: readonly number[]): void {
    const tally = new Tally();
    for (const at of receivedAt) tally.add('erased', at);
    this.#transaction(() => this.#events.counts.save(tally));
  }

  /** What has been counted, and how far each sink is: all of one moment. */
  account(since: number, until: number): JournalAccount {
    const { firstSeq, lastSeq } = this.#events;
    const { all: cursors } = this.cursors;
    return { firstSeq, lastSeq, cursors, routes: this.routes.read(), ...this.ledger.account(since, until) };
  }

  close(): void {
    if (this.#events.isUnsaved) this.#save();
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    this.#db.close();
    this.#events.log.close();
  }

  /** In a frame, and then out of its table; its id was seen when it came. */
  #putBack(records: Uint8Array, { table, keys }: Omit<Consumed, 'after'>, now: number): void {
    const frame = this.#events.newFrame();
    const tally = new Tally();
    const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
    for (let at = 0; at < bytes.length;) {
      const { size, receivedAt } = partsAt(bytes, at);
      frame.add(bytes, at, NO_ID);
      if (table === 'quarantine') tally.add('released', receivedAt);
      at += size;
    }
    const consumed = { table, keys, after: this.lastSeq };
    this.#noticingFull(now, () => this.#events.append(frame, tally, now, consumed));
    this.#save();
  }

  /** Writes to the database what the frames have said. */
  #save(): void {
    const { consumed } = this.#events;
    const back: (readonly [sink: string, after: number])[] = [];
    const saved = this.#transaction(() => {
      for (const { table, keys, after } of consumed) {
        for (const sink of this.setAside.remove(table, keys)) {
          // A sink that had left begins in front of them, and not behind, when it opens again.
          this.cursors.place(sink, after);
          back.push([sink, after]);
        }
      }
      return this.#events.save();
    });
    for (const [sink, after] of back) this.cursors.placed(sink, after);
    saved();
  }

  /** Removes the oldest segment that is settled, and received before a time. */
  #clear(now: number, before?: number): boolean {
    const { log } = this.#events;
    const oldest = log.removable(this.cursors.settled(), before);
    if (oldest === null) return false;
    // What it says is in the database before it goes, and so is that it goes.
    if (this.#events.isUnsaved) this.#save();
    const kept = this.#transaction(() => {
      this.#events.savePosition(log.positionAfter);
      return this.#seen.keep(oldest.lastSeq, now);
    });
    kept();
    log.removeOldest();
    return true;
  }

  #transaction<T>(work: () => T, now = 0): T {
    return this.#noticingFull(now, () => {
      this.#begin.run();
      try {
        const value = work();
        this.#commit.run();
        return value;
      } catch (error) {
        if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
        throw error;
      }
    });
  }

  /** A full disk is asked again now and then, not by each of a thousand requests a second. */
  #noticingFull<T>(now: number, work: () => T): T {
    try {
      return work();
    } catch (error) {
      const isFull =
        sqliteCode(error) === 'SQLITE_FULL' ||
        (error instanceof MillraceError && error.code === 'journal_full');
      if (isFull) this.#fullUntil = now + FULL_PAUSE;
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
    const { log } = this.#events;
    for (let shortage = this.#space.shortage(); shortage !== null; shortage = this.#space.shortage()) {
      // When all is settled, the newest segment can go as well once another is begun.
      if (this.cursors.settled() === log.lastSeq && log.isDue(Infinity)) log.roll();
      if (!this.#clear(now)) throw new MillraceError('journal_full', shortage);
    }
  }
}
