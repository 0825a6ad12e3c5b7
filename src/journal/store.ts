import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { MillraceError } from '../core/errors.ts';
import type { DeadLetterBatch, JournalAccount, JournalStatus, Selection } from '../core/journal.ts';
import { LOG_OFFSET } from '../core/receipt.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import { AsideEntries } from './aside-entries.ts';
import { appendBatch, type AppendingParts } from './appending.ts';
import type { Appended, Batch } from './batch.ts';
import { Checkpoints } from './checkpoints.ts';
import { Cursors } from './cursors.ts';
import { Damages, type Damage } from './damages.ts';
import { openDatabase } from './database.ts';
import { SeenIds } from './dedup.ts';
import { Eraser } from './erase.ts';
import { ErasedAlone, type PassedOver } from './erased-alone.ts';
import { Events } from './events.ts';
import type { HeadColumns } from './segments/heads.ts';
import { HeldReceipts } from './receipt-feed.ts';
import { Tally } from './hour-counts.ts';
import type { Repair } from './mend.ts';
import { Progress, SEAL } from './retention.ts';
import type { JournalOptions } from './protocol.ts';
import { RouteRecords } from './route-records.ts';
import { behind, headsAfter, idsAfter } from './segments/ledger.ts';
import { pageAfter, rowOf, type DamagedRecord, type PageLimits } from './segments/pages.ts';
import { encodeRecords, goingWithout, type Page } from './segments/records.ts';
import { Scrubber } from './scrub.ts';
import { NOTE, NoteKeeper } from './second-note.ts';
import { SetAside, type LetterRow } from './set-aside.ts';
import { generationFor, segmentBytesFor, Space } from './space.ts';
import { Transactions } from './transactions.ts';

/**
 * The journal, synchronous, inside the writer thread, where the main thread calls this and its parts (`Remote<Store>`): the
 * events in segments, and what is derived or changes rarely in the tables of a database. What a call has returned from is
 * on disk. `now`: milliseconds since the epoch.
 */
export class Store {
  readonly #db: Database.Database;
  readonly #options: JournalOptions;
  readonly #transactions: Transactions;
  readonly #seen: SeenIds;
  readonly #events: Events;
  readonly #appending: AppendingParts;
  readonly #progress: Progress;
  readonly #damages: Damages;
  readonly #erasedAlone: ErasedAlone;
  readonly #note: NoteKeeper;
  /** What the start found damaged or gone. */
  readonly repairs: readonly Repair[];
  #isPrepared = false;
  readonly checkpoints: Checkpoints;
  readonly cursors: Cursors;
  readonly eraser: Eraser;
  readonly setAside: SetAside;
  readonly asideEntries: AsideEntries;
  readonly routes: RouteRecords;
  readonly receipts: HeldReceipts;
  readonly space: Space;

  constructor(options: JournalOptions) {
    const { db, repairs } = openDatabase(options);
    const transactions = new Transactions(db);
    this.#db = db;
    this.#options = options;
    this.#transactions = transactions;
    const checkpoints = new Checkpoints(db);
    this.checkpoints = checkpoints;
    const where = { path: options.path, segmentBytes: segmentBytesFor(options) };
    this.#events = new Events(db, checkpoints, where);
    const base = { db, transactions, checkpoints, events: this.#events };
    const scrubber = new Scrubber(db, transactions);
    this.#seen = new SeenIds(db, options.dedupWindow, generationFor(options));
    this.space = new Space(options, { ...base, scrubber });
    this.routes = new RouteRecords(checkpoints);
    const { routes } = this;
    const note = new NoteKeeper({ ...base, folder: options.path });
    this.#note = note;
    this.cursors = new Cursors({ ...base, routes, note });
    this.setAside = new SetAside(db, checkpoints);
    this.asideEntries = new AsideEntries(db);
    const { cursors, setAside, asideEntries } = this;
    this.#damages = new Damages({ ...base, setAside, cursors });
    const alone = new ErasedAlone({ ...base, cursors });
    this.#erasedAlone = alone;
    this.eraser = new Eraser({ ...base, scrubber, alone, asideEntries, seen: this.#seen });
    this.receipts = new HeldReceipts({ ...base, cursors });
    const { fresh } = this.receipts;
    const parts = { ...base, seen: this.#seen, cursors, setAside, fresh };
    this.#appending = parts;
    this.#progress = new Progress({ ...parts, asideEntries, space: this.space, note });
    const { gone, unsaved, kept, hasRolled } = this.#events;
    this.repairs = [
      ...repairs,
      ...this.#damages.noteGone(gone, Date.now()),
      ...this.#damages.noteLostAside(kept, Date.now()),
    ];
    // What a crash has left undone.
    if ((unsaved?.consumed.length ?? 0) > 0 || hasRolled || gone.length > 0) this.#progress.save();
    if (this.repairs.length > 0 || !existsSync(join(options.path, NOTE))) note.write();
    if (options.create) this.prepare();
  }

  /**
   * Reads the ids that so far stand in the segments only. It comes before everything that changes something; a command
   * that only looks does without, which for a million events saves it seconds.
   */
  prepare(): void {
    if (this.#isPrepared) return;
    idsAfter(this.#events.log, this.#seen.savedUpTo, (id, seq, at) => this.#seen.restore(id, seq, at));
    this.#isPrepared = true;
  }

  get lastSeq(): number {
    return this.#events.lastSeq;
  }

  /**
   * @returns of each what became of it, as `appendBatch` says it
   * @throws MillraceError journal_full when the limit is reached and nothing settled can make room.
   */
  append(batch: Batch, now: number): readonly number[] {
    if (this.#transactions.isPausing(now))
      throw new MillraceError('journal_full', `no space left for ${this.#options.path}`);
    this.#progress.makeRoom(now);
    const answers = this.#transactions.noticingFull(now, () => appendBatch(this.#appending, batch, now));
    // A segment that the database does not know yet could go without a word.
    if (this.#events.hasRolled) this.#progress.save();
    return answers;
  }

  /** The same for another thread, which gets its buffer back. */
  appendAndReturn(batch: Batch, now: number): Appended {
    return { answers: this.append(batch, now), records: batch.records };
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
    return { firstSeq, places, records, damaged: found.length === 0 ? [] : this.#damages.note(found, now) };
  }

  /** Makes the database say what the segments do. */
  saveProgress(): void {
    this.#progress.save();
  }

  /** Heads of the events after `after` in order, as many as an answer should hold; none at the end. */
  heads(after: number): HeadColumns {
    return headsAfter(this.#events.log, after);
  }

  /** What is appended from now on was accepted under these routes. */
  acceptUnder(routes: readonly Route[]): RouteRecord {
    const before = JSON.stringify(this.routes.read());
    const record = this.#transactions.run(() =>
      this.routes.accept(routes, this.lastSeq, this.#events.firstSeq),
    );
    if (JSON.stringify(record) !== before) this.#note.write();
    return record;
  }

  /** @throws MillraceError journal_full when there is no room for it beside what is kept free */
  addDeadLetter(letter: LetterRow, event: Pick<Batch, 'records'>): void {
    this.#progress.makeRoomFor(event.records.length, letter.diedAt);
    this.setAside.add(letter, event);
  }

  /** Makes dead letters of what waits for a sink, up to a seq, and moves its cursor there. */
  addDeadLetters({ sink, upTo, letters }: DeadLetterBatch): number {
    const rows = letters.flatMap(({ redactions, ...letter }) => {
      // What cannot be read was told as damaged when it was looked at for this.
      const found = rowOf(this.#events.log, letter.seq);
      if (found === null) return [];
      const row = redactions === undefined ? found.row : goingWithout(found.row, redactions);
      return [{ letter: { ...letter, sink, attempts: 0 }, row, body: found.body }];
    });
    const bytes = rows.reduce((sum, { body }) => sum + body.length, 0);
    const [first] = rows;
    if (first !== undefined) this.#progress.makeRoomFor(bytes, first.letter.diedAt);
    this.#transactions.run(() => {
      for (const { letter, row, body } of rows) this.setAside.addRow(letter, row, body);
      this.cursors.write(sink, upTo);
    });
    this.cursors.note(sink, upTo);
    return letters.length;
  }

  /** @param batch the event as it is released */
  release(
    key: number,
    { records }: Pick<Batch, 'records'>,
    now: number,
  ): { readonly released: boolean; readonly lastSeq: number } {
    // What an earlier try has put back is not put back again: the database may have been full.
    this.#progress.save();
    const released = this.setAside.has('quarantine', key);
    if (released) this.#progress.putBack(records, { table: 'quarantine', keys: [key] }, now);
    return { released, lastSeq: this.lastSeq };
  }

  /** Puts letters back at the end of the journal, for the target that refused them and no other. */
  retryDeadLetters(selection: Selection, now: number): { readonly count: number; readonly lastSeq: number } {
    // What an earlier try has put back is not put back again: the database may have been full.
    this.#progress.save();
    let count = 0;
    for (;;) {
      const { keys, events } = this.setAside.toRetry(selection);
      if (keys.length === 0) return { count, lastSeq: this.lastSeq };
      this.#progress.putBack(encodeRecords(events), { table: 'dead_letters', keys }, now);
      count += keys.length;
    }
  }

  /** Clears away a bounded amount of what is past its time, and what can be done later than a commit; true when there is more. */
  maintain(now: number): boolean {
    // What follows takes space itself before it gives some back.
    this.#progress.clearWhileShort(now);
    const isMore = this.#transactions.unsynced(() => {
      const isSealing = this.#transactions.run(() => this.#seen.advance(SEAL, this.lastSeq))();
      const isExpiring = this.#transactions.run(() => this.#seen.expire(now))();
      // Before a segment goes it is synced; until then it can be read there again.
      this.#progress.save();
      return isSealing || isExpiring;
    });
    this.#note.refresh(now);
    return this.#progress.retain(now, this.#options.retention) || isMore;
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
      bytes: this.space.bytes(),
      maxBytes,
      quarantined: count('quarantine'),
      deadLetters: count('dead_letters'),
      damaged: this.#damages.count(),
      cursors: this.cursors.known().map(([sink, seq]) => behind(log, sink, seq, now)),
    };
  }

  /** Counts events of erased users that came in, and notes those that were passed over: they leave nothing else. */
  noteErased(receivedAt: readonly number[], passedOver: readonly PassedOver[]): void {
    const tally = new Tally();
    for (const at of receivedAt) tally.add('erased', at);
    this.#transactions.run(() => {
      this.#events.counts.save(tally);
      this.#erasedAlone.passedOver(passedOver);
    });
  }

  /** What has been counted, and how far each sink is: all of one moment. */
  account(since: number, until: number): JournalAccount {
    const { firstSeq, lastSeq } = this.#events;
    const { all: cursors } = this.cursors;
    const log = this.receipts.log();
    const offset = log === null ? null : this.checkpoints.load(LOG_OFFSET + log.id);
    return {
      firstSeq,
      lastSeq,
      cursors,
      routes: this.routes.read(),
      ...this.#events.counted(since, until),
      started: this.cursors.started(),
      ...this.setAside.dropped(since, until),
      erasedAlone: this.#erasedAlone.read(since, until, firstSeq),
      damaged: this.#damages.since(since),
      ...(log === null || offset === null ? {} : { receipts: { ...log, offset: Number(offset) } }),
    };
  }

  close(): void {
    this.#progress.save();
    this.#note.refresh(Infinity);
    this.#db.pragma('wal_checkpoint(TRUNCATE)');
    this.#db.close();
    this.#events.log.close();
  }
}
