import type Database from 'better-sqlite3';
import { ID_REUSED } from '../core/ingest.ts';
import type { Unfitness } from '../core/ingest.ts';
import type { CursorStatus, EventHead, JournalAccount, JournalStatus, Selection } from '../core/journal.ts';
import { MillraceError } from '../core/errors.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import { Cursors } from './cursors.ts';
import { EVENT_COLUMNS, openDatabase, sqliteCode } from './database.ts';
import { SeenIds } from './dedup.ts';
import { Eraser } from './erase.ts';
import { EventReader, type DamagedRecord } from './event-reader.ts';
import { LedgerReader } from './ledger-reader.ts';
import { RouteRecords } from './route-records.ts';
import { Letters } from './letters.ts';
import type { Answers, AppendRequest, BuryRequest, JournalOptions, Packed } from './protocol.ts';
import { Space } from './space.ts';
import { bodyOf, checksumOf, storedOf, valuesOf, type StoredEvent } from './rows.ts';

/**
 * The journal's tables, synchronous, inside the writer thread. Every public method is one transaction; what it has
 * returned from is on disk.
 */
export class Store {
  readonly #db: Database.Database;
  readonly #options: JournalOptions;
  readonly #seen: SeenIds;
  readonly letters: Letters;
  readonly #ledger: LedgerReader;
  readonly eraser: Eraser;
  readonly #insert;
  readonly #quarantine;
  readonly #reader: EventReader;
  /** Damage found by the read that is under way. */
  #found: DamagedRecord[] = [];
  readonly #begin;
  readonly #commit;
  readonly #space: Space;
  readonly cursors: Cursors;
  readonly routes: RouteRecords;
  #upto: number;
  #lastSeq: number;
  #fullUntil = 0;

  constructor(options: JournalOptions) {
    const db = openDatabase(options.path, options.create);
    this.#db = db;
    this.#options = options;
    this.#seen = new SeenIds(db, options.dedupWindow);
    this.#insert = db.prepare(
      `INSERT INTO events (upto, crc, ${EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#quarantine = db.prepare(
      `INSERT INTO quarantine (reasons, ${EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#reader = new EventReader(db, (record) => this.#found.push(record));
    // Prepared once: they run with each commit, and to compile them takes longer than to run them.
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#space = new Space(db, options, () => this.eraser.heldBytes);
    this.#lastSeq = Number(
      db.prepare(`SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'`).pluck().get(),
    );
    this.#upto = Number(db.prepare('SELECT upto FROM events ORDER BY seq DESC LIMIT 1').pluck().get() ?? 0);
    this.#ledger = new LedgerReader(db);
    this.routes = new RouteRecords(db);
    this.cursors = new Cursors(db, (work) => this.#transaction(work), {
      ledger: this.#ledger,
      routes: this.routes,
    });
    this.letters = new Letters(db, (event) => this.#put(event));
    this.eraser = new Eraser(db, (work) => this.#transaction(work));
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** @throws MillraceError journal_full when the limit is reached and nothing settled can make room. */
  append(request: AppendRequest): Answers['append'] {
    if (request.now < this.#fullUntil)
      throw new MillraceError('journal_full', `no space left for ${this.#options.path}`);
    this.#makeRoom(request.now);
    const answers: number[] = [];
    this.#transaction(() => {
      let at = 0;
      let added = 0;
      for (const [index, row] of request.rows.entries()) {
        const body = bodyOf(request, at, row[9]);
        at += row[9];
        const seen = this.#seen.add({ source: row[1], id: request.keys[index] ?? row[0], body }, request.now);
        if (seen === 'repeated') {
          answers.push(0);
          this.#ledger.counts.add('duplicates', row[6]);
          continue;
        }
        added += 1;
        const unfit = request.unfit[index] ?? null;
        const kept = seen === 'new' ? unfit : withReuse(unfit);
        this.#ledger.counts.add(kept !== null ? 'quarantined' : countedAs(row[8]), row[6]);
        if (kept === null) answers.push(this.#put(storedOf(row, body)));
        else {
          this.#quarantine.run(kept, ...valuesOf(storedOf(row, body)));
          answers.push(seen === 'reused' ? -2 : -1);
        }
      }
      this.#seen.advance(added);
      this.#ledger.counts.save();
    }, request.now);
    return answers;
  }

  /** Records that are damaged are noted, and what can be read of them goes to quarantine, where a person sees it. */
  read(after: number, limits: { count: number; bytes: number }, now: number): Answers['read'] {
    this.#found = [];
    const page = this.#reader.read(after, this.#lastSeq, limits);
    return { ...page, damaged: this.#found.length === 0 ? [] : this.#noteDamage(this.#found, now) };
  }

  /** Each is noted once, however many sinks come across it; returns those that were new. */
  #noteDamage(found: readonly DamagedRecord[], now: number): Answers['read']['damaged'] {
    const note = this.#db.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?, ?)');
    return this.#transaction(() =>
      found.flatMap(({ seq, id, event }) => {
        if (note.run(seq, id, now).changes === 0) return [];
        const detail = `journal record ${seq} is not what was written`;
        if (event !== null)
          this.#quarantine.run(JSON.stringify([{ code: 'damaged', detail }]), ...valuesOf(event));
        return [{ seq, id }];
      }),
    );
  }

  openCursor(sink: string): number {
    return this.cursors.open(sink, this.#lastSeq);
  }

  /** What is appended from now on was accepted under these routes. */
  acceptUnder(routes: readonly Route[]): RouteRecord {
    return this.#transaction(() => this.routes.accept(routes, this.#lastSeq, this.#firstSeq()));
  }

  /** Makes dead letters of what waits for a sink, up to a seq, and moves its cursor there. */
  bury({ sink, upTo, letters }: BuryRequest): number {
    this.#transaction(() => {
      for (const letter of letters) this.letters.addCopy(sink, letter);
      this.cursors.write(sink, upTo);
    });
    this.cursors.note(sink, upTo);
    return letters.length;
  }

  loadCheckpoint(key: string): string | null {
    const value = this.#db.prepare('SELECT value FROM checkpoints WHERE key = ?').pluck().get(key);
    return typeof value === 'string' ? value : null;
  }

  saveCheckpoint(key: string, value: string): void {
    this.#transaction(() => {
      this.#db
        .prepare(
          'INSERT INTO checkpoints VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
        )
        .run(key, value);
    });
  }

  release(key: number, packed: Packed): number {
    const row = packed.rows[0];
    if (row === undefined) return 0;
    return this.#transaction(() => {
      const { changes } = this.#db.prepare('DELETE FROM quarantine WHERE key = ?').run(key);
      if (changes === 0) return 0;
      this.#ledger.counts.add('released', row[6]);
      this.#ledger.counts.save();
      return this.#put(storedOf(row, bodyOf(packed, 0, row[9])));
    });
  }

  retryDeadLetters(selection: Selection): Answers['retryDeadLetters'] {
    const end = this.#lastSeq;
    const { count, sinks } = this.#transaction(() => {
      const retried = this.letters.retry(selection);
      // A sink that had left begins in front of them, and not behind, when it opens again.
      for (const sink of retried.sinks) this.cursors.place(sink, end);
      return retried;
    });
    for (const sink of sinks) this.cursors.placed(sink, end);
    return { count, lastSeq: this.#lastSeq };
  }

  /** Clears away a bounded amount of what is past its time; true when there is more. */
  maintain(now: number): boolean {
    return this.#transaction(() => {
      const expired = this.#seen.expire(now);
      const old = this.#db
        .prepare('SELECT seq, received_at FROM events WHERE seq <= ? ORDER BY seq LIMIT ?')
        .all(this.cursors.settled(this.#lastSeq), PURGE) as { seq: number; received_at: number }[];
      // From the front and without holes, so that positions can be counted by subtraction.
      const young = old.findIndex(({ received_at }) => received_at >= now - this.#options.retention);
      const last = young === -1 ? old.at(-1) : old[young - 1];
      if (last === undefined) return expired;
      this.#db.prepare('DELETE FROM events WHERE seq <= ?').run(last.seq);
      return expired || old.length === PURGE;
    });
  }

  status(now: number): JournalStatus {
    const one = (sql: string): number => Number(this.#db.prepare(sql).pluck().get() ?? 0);
    const firstSeq = this.#firstSeq();
    return {
      path: this.#options.path,
      events: this.#lastSeq - firstSeq + 1,
      firstSeq,
      lastSeq: this.#lastSeq,
      bytes: this.#space.bytes(),
      maxBytes: this.#options.maxBytes,
      quarantined: one('SELECT count(*) FROM quarantine'),
      deadLetters: one('SELECT count(*) FROM dead_letters'),
      damaged: one('SELECT count(*) FROM damaged'),
      cursors: this.cursors.known.map(([sink, seq]) => this.#cursorStatus(sink, seq, now)),
    };
  }

  /** Counts events of erased users, which leave nothing else. */
  countErased(receivedAt: readonly number[]): void {
    this.#transaction(() => {
      for (const at of receivedAt) this.#ledger.counts.add('erased', at);
      this.#ledger.counts.save();
    });
  }

  /** Heads of the events after `seq`, as many as an answer should hold. */
  heads(after: number): EventHead[] {
    return this.#ledger.heads(after);
  }

  /** What has been counted, and how far each sink is: all of one moment. */
  account(since: number, until: number): JournalAccount {
    const cursors = this.cursors.all;
    return {
      firstSeq: this.#firstSeq(),
      lastSeq: this.#lastSeq,
      cursors,
      routes: this.routes.record,
      ...this.#ledger.account(since, until),
    };
  }

  close(): void {
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    this.#db.close();
  }

  #put(event: StoredEvent): number {
    this.#upto += event.body.length;
    this.#lastSeq = Number(
      this.#insert.run(this.#upto, checksumOf(event), ...valuesOf(event)).lastInsertRowid,
    );
    return this.#lastSeq;
  }

  #transaction<T>(work: () => T, now = 0): T {
    const upto = this.#upto;
    const lastSeq = this.#lastSeq;
    this.#begin.run();
    try {
      const value = work();
      this.#commit.run();
      this.#seen.committed();
      return value;
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
      this.#upto = upto;
      this.#lastSeq = lastSeq;
      this.#seen.rolledBack();
      this.#ledger.counts.rolledBack();
      // A full disk is asked again now and then, not by each of a thousand requests a second.
      if (sqliteCode(error) === 'SQLITE_FULL') this.#fullUntil = now + FULL_PAUSE;
      throw error;
    }
  }

  /** The oldest seq still held; one past the newest when none is. */
  #firstSeq(): number {
    return Number(this.#db.prepare('SELECT min(seq) FROM events').pluck().get() ?? this.#lastSeq + 1);
  }

  /** When space is short, what is settled goes before its retention is over; an unsettled event never does. */
  #makeRoom(now: number): void {
    for (let shortage = this.#space.shortage(); shortage !== null; shortage = this.#space.shortage()) {
      const changes = this.#transaction(
        () =>
          this.#db
            .prepare(
              'DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= ? ORDER BY seq LIMIT ?)',
            )
            .run(this.cursors.settled(this.#lastSeq), PURGE).changes,
        now,
      );
      if (changes === 0) throw new MillraceError('journal_full', shortage);
    }
  }

  #cursorStatus(sink: string, seq: number, now: number): CursorStatus {
    const next = this.#db
      .prepare(
        'SELECT upto - length(body) AS before, received_at AS at FROM events WHERE seq > ? ORDER BY seq LIMIT 1',
      )
      .get(seq) as { before: number; at: number } | undefined;
    if (next === undefined) return { sink, seq, backlog: 0, backlogBytes: 0, backlogAge: 0 };
    return {
      sink,
      seq,
      backlog: this.#lastSeq - Math.max(seq, this.#firstSeq() - 1),
      backlogBytes: this.#upto - next.before,
      backlogAge: Math.max(0, now - next.at),
    };
  }
}

/** Reasons as JSON, with that of the id in front. */
function withReuse(unfit: string | null): string {
  return JSON.stringify([ID_REUSED, ...(unfit === null ? [] : (JSON.parse(unfit) as Unfitness[]))]);
}

/** A replay sends again what was counted when it came. */
function countedAs(handling: string | null): 'accepted' | 'replayed' {
  return handling !== null && handling.includes('"replayId"') ? 'replayed' : 'accepted';
}

/** Events cleared away in one transaction. */
const PURGE = 1000;
/** Milliseconds without another try after the disk was full. */
const FULL_PAUSE = 500;
