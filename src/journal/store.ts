import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import type { DeadLetterBatch, JournalAccount, JournalStatus, Selection } from '../core/journal.ts';
import { LOG_OFFSET } from '../core/receipt.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import { asBuffer } from '../lib/byte-writer.ts';
import { AsideEntries } from './aside-entries.ts';
import { appendBatch, type AppendingParts } from './appending.ts';
import type { Appended, Batch } from './batch.ts';
import { Checkpoints } from './checkpoints.ts';
import { Cursors } from './cursors.ts';
import { Damages, type Damage } from './damages.ts';
import { openDatabase, type JournalOptions } from './database.ts';
import { SeenIds } from './dedup.ts';
import { Eraser } from './erase.ts';
import { ErasedAlone, type PassedOver } from './erased-alone.ts';
import { Events } from './events.ts';
import { HourTally } from './hour-counts.ts';
import type { Repair } from './mend.ts';
import { ReceiptFeed } from './receipt-feed.ts';
import { Retention, SEAL } from './retention.ts';
import { RouteRecords } from './route-records.ts';
import { Scrubber } from './scrub.ts';
import { NOTE, NoteKeeper } from './second-note.ts';
import { hashesAt, NO_ID, partsAt } from './segments/format.ts';
import { headsAfter, type HeadColumns } from './segments/heads.ts';
import { pageAfter, rowOf, type DamagedRecord, type PageLimits } from './segments/pages.ts';
import { bodyAt, encodeRecords, rowAt, withRedactions, type Page } from './segments/records.ts';
import { SetAside, type DeadLetterAbout } from './set-aside.ts';
import { generationFor, segmentBytesFor, Space } from './space.ts';
import { Transactions } from './transactions.ts';

/**
 * The journal inside the writer thread, synchronous; the main thread calls it and its public parts as a `Remote<Store>`. Events are
 * in segments; what is derived from them or rarely changes is in the tables of a database. When a call returns, what it wrote is on
 * disk. `now`: milliseconds since the epoch.
 */
export class Store {
  readonly #db: Database.Database;
  readonly #options: JournalOptions;
  readonly #transactions: Transactions;
  readonly #seen: SeenIds;
  readonly #events: Events;
  readonly #appending: AppendingParts;
  readonly #damages: Damages;
  readonly #erasedAlone: ErasedAlone;
  readonly #note: NoteKeeper;
  /** What the start found damaged or lost. */
  readonly repairs: readonly Repair[];
  #isPrepared = false;
  readonly checkpoints: Checkpoints;
  readonly cursors: Cursors;
  readonly eraser: Eraser;
  readonly setAside: SetAside;
  readonly asideEntries: AsideEntries;
  readonly routes: RouteRecords;
  readonly receipts: ReceiptFeed;
  readonly space: Space;
  readonly retention: Retention;

  /** @throws MillraceError journal_in_use, journal_missing, journal_damaged, journal_unreadable, folder_unwritable */
  constructor(options: JournalOptions) {
    const { path } = options;
    const { db, repairs } = openDatabase(options);
    const transactions = new Transactions(db);
    const checkpoints = new Checkpoints(db);
    const tables = { db, transactions, checkpoints };
    const events = new Events(tables, path, segmentBytesFor(options));
    const base = { ...tables, events };
    const scrubber = new Scrubber(db, transactions);
    const seen = new SeenIds(base, options.dedupWindow, generationFor(options));
    const note = new NoteKeeper(base, path);
    this.#db = db;
    this.#options = options;
    this.#transactions = transactions;
    this.#seen = seen;
    this.#events = events;
    this.#note = note;
    this.checkpoints = checkpoints;
    this.space = new Space(options, { ...base, scrubber });
    this.routes = new RouteRecords(checkpoints);
    this.cursors = new Cursors({ ...base, routes: this.routes, note });
    this.setAside = new SetAside(db, checkpoints);
    this.asideEntries = new AsideEntries(db);
    const { setAside, asideEntries, cursors, space } = this;
    this.#damages = new Damages({ ...base, setAside, cursors });
    this.#erasedAlone = new ErasedAlone({ ...base, cursors });
    this.receipts = new ReceiptFeed({ ...base, cursors });
    this.#appending = { ...base, seen, setAside, recentEntries: this.receipts.recent };
    this.retention = new Retention({ ...base, seen, cursors, setAside, asideEntries, space, note });
    this.eraser = new Eraser({ ...base, scrubber, alone: this.#erasedAlone, asideEntries, seen });
    const now = Date.now();
    this.repairs = [
      ...repairs,
      ...this.#damages.noteLostSegments(events.lost, now),
      ...this.#damages.noteLostQuarantine(events.kept, now),
    ];
    // What a crash has left undone.
    const { unsaved, hasRolled, lost } = events;
    if ((unsaved?.consumed.length ?? 0) > 0 || hasRolled || lost.length > 0) this.retention.save();
    if (this.repairs.length > 0 || !existsSync(join(path, NOTE))) note.write();
    if (options.create) this.prepare();
  }

  /**
   * Reads the ids that are only in the segments. It comes before everything that changes something; a command that only looks goes
   * without it, which saves seconds for a million events.
   */
  prepare(): void {
    if (this.#isPrepared) return;
    const { savedUpTo } = this.#seen;
    let writtenAt = 0;
    for (const { item } of this.#events.log.items(savedUpTo + 1)) {
      if (item.kind === 'frame') ({ writtenAt } = item);
      if (item.kind !== 'record' || item.seq <= savedUpTo) continue;
      const id = hashesAt(item.bytes, item.pos);
      // The head of its frame may be damaged.
      const at = Math.max(writtenAt, item.receivedAt);
      if (id.key !== NO_ID.key) this.#seen.restore(id, item.seq, at);
    }
    this.#isPrepared = true;
  }

  get lastSeq(): number {
    return this.#events.log.lastSeq;
  }

  /**
   * @returns what became of each event, as `appendBatch` says, and the buffer of the batch
   * @throws MillraceError journal_full when the limit is reached and no settled event can make room
   */
  append(batch: Batch, now: number): Appended {
    if (this.#transactions.isPausing(now))
      throw new MillraceError('journal_full', `no space left for ${this.#options.path}`);
    this.retention.makeRoom(now);
    const answers = this.#transactions.noticingFull(now, () => appendBatch(this.#appending, batch, now));
    // The loss of a segment that the database does not know would go unnoticed.
    if (this.#events.hasRolled) this.retention.save();
    return { answers, records: batch.records };
  }

  /** A page of events. Damaged records are noted, and quarantined if they can be read; `damaged` has those found for the first time. */
  read(after: number, limits: PageLimits, now: number): Page & { readonly damaged: readonly Damage[] } {
    const found: DamagedRecord[] = [];
    const { firstSeq, places, records } = pageAfter(this.#events.log, after, limits, (one) =>
      found.push(one),
    );
    return { firstSeq, places, records, damaged: found.length === 0 ? [] : this.#damages.note(found, now) };
  }

  /** Heads of the events after `after` in order; none at the end. */
  heads(after: number): HeadColumns {
    return headsAfter(this.#events.log, after);
  }

  /** What is appended from now on is accepted under these routes. */
  acceptUnder(routes: readonly Route[]): RouteRecord {
    const before = JSON.stringify(this.routes.read());
    const record = this.#transactions.run(() =>
      this.routes.accept(routes, this.lastSeq, this.#events.log.firstSeq),
    );
    if (JSON.stringify(record) !== before) this.#note.write();
    return record;
  }

  /** @throws MillraceError journal_full when there is no room for it beside the reserve */
  addDeadLetter(about: DeadLetterAbout, { records }: Pick<Batch, 'records'>): void {
    this.retention.makeRoomFor(records.length, about.diedAt);
    const bytes = asBuffer(records);
    const parts = partsAt(bytes, 0);
    this.#transactions.run(() =>
      this.setAside.addDeadLetter(about, rowAt(bytes, 0, parts), bodyAt(bytes, 0, parts)),
    );
  }

  /** Makes dead letters of what waits for a sink up to a seq, and moves its cursor there. */
  addDeadLetters({ sink, upTo, deadLetters }: DeadLetterBatch): number {
    const rows = deadLetters.flatMap(({ redactions, ...about }) => {
      // A damaged record was reported when it was read for this.
      const found = rowOf(this.#events.log, about.seq);
      if (found === null) return [];
      const row = redactions === undefined ? found.row : withRedactions(found.row, redactions);
      return [{ about: { ...about, sink, attempts: 0 }, row, body: found.body }];
    });
    const bytes = rows.reduce((sum, { body }) => sum + body.length, 0);
    const [first] = rows;
    if (first !== undefined) this.retention.makeRoomFor(bytes, first.about.diedAt);
    this.#transactions.run(() => {
      for (const { about, row, body } of rows) this.setAside.addDeadLetter(about, row, body);
      this.cursors.write(sink, upTo);
    });
    return deadLetters.length;
  }

  /** Appends a quarantined event, as it is now, and deletes its row. `released` is false when it is not there any more. */
  release(
    key: number,
    { records }: Pick<Batch, 'records'>,
    now: number,
  ): { readonly released: boolean; readonly lastSeq: number } {
    // An earlier try may have appended it, and failed to delete the row on a full disk.
    this.retention.save();
    const released = this.setAside.isQuarantined(key);
    if (released) this.retention.reappend(records, { table: 'quarantine', keys: [key] }, now);
    return { released, lastSeq: this.lastSeq };
  }

  /** Appends dead letters again, each only for the target that refused it. */
  retryDeadLetters(selection: Selection, now: number): { readonly count: number; readonly lastSeq: number } {
    // As in `release`.
    this.retention.save();
    let count = 0;
    for (;;) {
      const { keys, events } = this.setAside.toRetry(selection);
      if (keys.length === 0) return { count, lastSeq: this.lastSeq };
      this.retention.reappend(encodeRecords(events), { table: 'dead_letters', keys }, now);
      count += keys.length;
    }
  }

  /** Does a bounded amount of what can be done later than a commit, and removes what is past its time. @returns whether there is more */
  maintain(now: number): boolean {
    // The rest takes some space before it frees any.
    this.retention.clearWhileShort(now);
    const isMore = this.#transactions.unsynced(() => {
      const isSealing = this.#transactions.run(() => this.#seen.advance(SEAL, this.lastSeq));
      const isExpiring = this.#transactions.run(() => this.#seen.expire(now));
      // Synced before a segment is removed; until then it can be made again from the segment.
      this.retention.save();
      return isSealing || isExpiring;
    });
    this.#note.refresh(now);
    return this.retention.retain(now, this.#options.retention) || isMore;
  }

  status(now: number): JournalStatus {
    const count = (table: string): number =>
      Number(this.#db.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    const { firstSeq, lastSeq } = this.#events.log;
    const { path, maxBytes } = this.#options;
    return {
      path,
      events: lastSeq - firstSeq + 1,
      firstSeq,
      lastSeq,
      bytes: this.space.bytes(),
      maxBytes,
      quarantined: count('quarantine'),
      deadLetters: count('dead_letters'),
      damaged: this.#damages.count(),
      cursors: this.cursors.status(now),
    };
  }

  /** Counts events of erased users that came in, and notes those that were not sent to a sink: nothing else of them is kept. */
  noteErased(receivedAt: readonly number[], passedOver: readonly PassedOver[]): void {
    const tally = new HourTally();
    for (const at of receivedAt) tally.add('erased', at);
    this.#transactions.run(() => {
      this.#events.counts.save(tally);
      this.#erasedAlone.add(passedOver);
    });
  }

  /** The counts of a span of time, and how far each sink is, all of one moment. */
  account(since: number, until: number): JournalAccount {
    const { firstSeq, lastSeq } = this.#events.log;
    const log = this.receipts.log();
    const offset = log === null ? null : this.checkpoints.load(LOG_OFFSET + log.id);
    return {
      firstSeq,
      lastSeq,
      cursors: this.cursors.all,
      routes: this.routes.read(),
      ...this.#events.counted(since, until),
      started: this.cursors.started(),
      dropped: this.setAside.dropped(since, until),
      erasedAlone: this.#erasedAlone.read(since, until, firstSeq),
      damaged: this.#damages.since(since),
      ...(log === null || offset === null ? {} : { receipts: { ...log, offset: Number(offset) } }),
    };
  }

  close(): void {
    this.retention.save();
    this.#note.refresh(Infinity);
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    this.#db.close();
    this.#events.log.close();
  }
}
