import type { Clock } from '../core/clock.ts';
import type { ErasableStore, ErasureRun, Subject, RemovedEvent } from '../core/erasure.ts';
import { MillraceError } from '../core/errors.ts';
import type { Event, JournalEvent } from '../core/event.ts';
import type { AppendResult, IngestOptions, IsErased, InvalidReason } from '../core/ingest.ts';
import type {
  DeadLetter,
  Journal,
  JournalAccount,
  JournalStatus,
  QuarantinedEvent,
  Selection,
  SetAsideSelection,
} from '../core/journal.ts';
import type { SetAsideEntry, SetAsideKind } from '../core/receipt.ts';
import type { RouteRecord } from '../core/route-record.ts';
import type { SinkTrouble } from '../core/sink.ts';
import { remoteOf, type Remote } from '../lib/remote.ts';
import { committing } from './commit.ts';
import type { Damage } from './damages.ts';
import type { JournalOptions } from './database.ts';
import { GroupCommit, type Entry } from './group-commit.ts';
import { LateWrites } from './late-writes.ts';
import type { Repair } from './mend.ts';
import { clearOwner } from './owner.ts';
import { eraseSubjects, forgetEvents, performSteps } from './run-erasure.ts';
import { unpackHeads } from './segments/heads.ts';
import { decodeRecords, encodeRecords, eventsOf } from './segments/records.ts';
import type { Store } from './store.ts';
import { LastSeq, Tail } from './tail.ts';
import { Upkeep } from './upkeep.ts';
import { WriterThread, type Writer } from './writer-thread.ts';

export interface SqliteJournalOptions extends JournalOptions {
  readonly clock: Clock;
  /** Called once when the state of the journal is unknown; the process must end. */
  readonly onFailure: (error: MillraceError) => void;
  /** Called after each group commit: how many events, and milliseconds from handing them over to the answer. */
  readonly onCommit?: (events: number, durationMs: number) => void;
  /** Asked before an event becomes a dead letter or is released. Events that come in are checked elsewhere. */
  readonly isErased?: IsErased;
  /** Called for each damaged record; it is in quarantine if it could be read. */
  readonly onDamage?: (record: Damage) => void;
  /** Called for each thing that the start found damaged or lost. */
  readonly onRepair?: (repair: Repair) => void;
  /** Bytes of the newest events kept in memory for sinks that keep up. */
  readonly tailBytes?: number;
  /** False for a command, which leaves maintenance to the receiver. */
  readonly maintained?: boolean;
}

const TAIL_BYTES = 32 * 1024 * 1024;

/**
 * The journal on the disk of this machine, on the main thread; most of its calls are performed by the writer thread.
 *
 * Modes: open → failed (a write failed for another reason than a full disk: every call rejects, and `onFailure` was called), or
 * open → closing → closed. `#mode` changes in `#fail` and `close` only.
 */
export class SqliteJournal implements Journal, ErasableStore {
  readonly name = 'journal';
  readonly #writer: Writer;
  readonly #store: Remote<Store>;
  readonly #options: SqliteJournalOptions;
  readonly #tail: Tail;
  readonly #late: LateWrites;
  /** Cursor of each sink of this run. */
  readonly #cursors = new Map<string, number>();
  /** Sinks whose cursor was removed and not opened again. */
  readonly #removed = new Set<string>();
  readonly #commits: GroupCommit;
  readonly #last: LastSeq;
  readonly #upkeep: Upkeep;
  #mode: 'open' | 'failed' | 'closing' | 'closed' = 'open';
  readonly checkpoints: Journal['checkpoints'];
  readonly receipts: Remote<Store>['receipts'];

  /** @param writer as `open` starts it; one without a thread in simulations */
  constructor(writer: Writer, options: SqliteJournalOptions) {
    const { clock, onCommit, tailBytes = TAIL_BYTES, maintained = true } = options;
    const store = remoteOf<Store>((call) => writer.call(call));
    this.#writer = writer;
    this.#store = store;
    this.#options = options;
    this.checkpoints = store.checkpoints;
    this.receipts = store.receipts;
    this.#last = new LastSeq(writer.lastSeq, (error) => this.#fail(error));
    this.#tail = new Tail(tailBytes);
    this.#late = new LateWrites(store, clock);
    this.#upkeep = new Upkeep(store, clock, maintained);
    const parts = { store, tail: this.#tail, last: this.#last, upkeep: this.#upkeep, clock, onCommit };
    this.#commits = new GroupCommit(committing(parts), clock);
    writer.onFailure((error) => this.#fail(error));
  }

  /** @throws MillraceError journal_in_use, journal_missing, journal_damaged, journal_unreadable, folder_unwritable */
  static async open(options: SqliteJournalOptions): Promise<SqliteJournal> {
    const writer = await WriterThread.start(options);
    const journal = new SqliteJournal(writer, options);
    for (const repair of writer.repairs) options.onRepair?.(repair);
    return journal;
  }

  get lastSeq(): number {
    return this.#last.seq;
  }

  readonly routes: Journal['routes'] = () => this.#store.routes.read();
  readonly ahead: Remote<Store>['cursors']['ahead'] = (sink) => this.#store.cursors.ahead(sink);
  readonly acceptUnder: Journal['acceptUnder'] = (routes) => this.#store.acceptUnder(routes);
  readonly addDeadLetters: Journal['addDeadLetters'] = (batch) => this.#store.addDeadLetters(batch);
  readonly dropDeadLetters: Journal['dropDeadLetters'] = (selection) =>
    this.#store.setAside.drop('dead_letters', selection);
  readonly dropQuarantine: Journal['dropQuarantine'] = (selection) =>
    this.#store.setAside.drop('quarantine', selection);
  readonly heads: Journal['heads'] = (after) => this.#store.heads(after).then(unpackHeads);
  readonly troubles = (): readonly SinkTrouble[] => this.#upkeep.troubles();
  readonly flush = (): Promise<void> => this.#late.flush();

  logOf(): this {
    return this;
  }

  accept(event: Event, { handling, dedupKey }: IngestOptions = {}): Promise<AppendResult> {
    return this.#add({ event, handling, invalid: null, dedupKey });
  }

  quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    { dedupKey }: IngestOptions = {},
  ): Promise<AppendResult> {
    return this.#add({ event, handling: undefined, invalid: JSON.stringify(reasons), dedupKey });
  }

  countErased({ receivedAt }: Event): Promise<AppendResult> {
    if (this.#mode !== 'open') return Promise.reject(this.#unavailable());
    this.#late.countErased(receivedAt);
    return Promise.resolve({ status: 'erased' });
  }

  settled(): Promise<void> {
    return this.#commits.settled();
  }

  async read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    if (after >= this.#last.seq) return [];
    const recent = this.#tail.read(after, limits);
    if (recent !== null) return recent;
    const page = await this.#store.read(after, limits, this.#options.clock.now());
    for (const record of page.damaged) this.#options.onDamage?.(record);
    return eventsOf(page);
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    return this.#last.subscribe(listener);
  }

  async openCursor(sink: string): Promise<number> {
    await this.#tryFlush();
    const seq = await this.#store.cursors.open(sink);
    this.#removed.delete(sink);
    this.#cursors.set(sink, seq);
    return seq;
  }

  releaseCursor(sink: string, forget = false): void {
    if (forget) this.#forgetCursor(sink);
    this.#store.cursors.release(sink, forget).catch(() => undefined);
  }

  moveCursor(sink: string, seq: number, note?: () => string | null): void {
    // A late call of a sink that was removed, and may be there again, says nothing of its new cursor.
    if (this.#mode === 'closed' || this.#removed.has(sink) || seq < (this.#cursors.get(sink) ?? 0)) return;
    this.#cursors.set(sink, seq);
    this.#tail.drop(Math.min(...this.#cursors.values()));
    this.#late.move(sink, seq, note);
  }

  passedOver(sink: string, { seq, receivedAt, handling }: JournalEvent): void {
    // A replayed event does not count as received.
    if (handling.replayId === undefined) this.#late.passedOver([sink, seq, receivedAt]);
  }

  async cursors(): Promise<readonly (readonly [sink: string, seq: number])[]> {
    await this.#tryFlush();
    return this.#store.cursors.known();
  }

  async succeed(from: string, to: string): Promise<RouteRecord> {
    await this.flush();
    this.#forgetCursor(from);
    return this.#store.cursors.succeed(from, to);
  }

  async leave(sink: string): Promise<RouteRecord> {
    await this.flush();
    this.#forgetCursor(sink);
    return this.#store.cursors.leave(sink);
  }

  async status(): Promise<JournalStatus> {
    await this.#tryFlush();
    const status = await this.#store.status(this.#options.clock.now());
    const troubles = this.troubles();
    return troubles.length === 0 ? status : { ...status, troubles };
  }

  async account(since: number, until: number): Promise<JournalAccount> {
    await this.#tryFlush();
    return this.#store.account(since, until);
  }

  async addDeadLetter({ event, ...about }: Omit<DeadLetter, 'key'>): Promise<void> {
    if (this.#options.isErased?.(event) === true) return this.passedOver(about.sink, event);
    const records = encodeRecords([{ event, handling: event.handling }]);
    await this.#store.addDeadLetter({ ...about, seq: event.seq }, { records });
  }

  async listDeadLetters(selection: SetAsideSelection, bodies = true): Promise<readonly DeadLetter[]> {
    const { about, records } = await this.#store.setAside.list(selection, bodies);
    return decodeRecords(records).map((event, index) => {
      const { seq, ...rest } = about[index] as (typeof about)[number];
      return { ...rest, event: { ...event, seq } };
    });
  }

  async retryDeadLetters(selection: Selection): Promise<number> {
    const done = await this.#store.retryDeadLetters(selection, this.#options.clock.now());
    this.#last.advance(done.lastSeq);
    return done.count;
  }

  async listQuarantine(selection: SetAsideSelection, bodies = true): Promise<readonly QuarantinedEvent[]> {
    const { about, records } = await this.#store.setAside.listQuarantine(selection, bodies);
    return decodeRecords(records).map((event, index) => ({
      ...event,
      ...(about[index] as (typeof about)[number]),
    }));
  }

  async release(key: number, event: Event): Promise<boolean> {
    // Validated again, it may turn out to be of a user who was erased since.
    if (this.#options.isErased?.(event) === true) {
      await this.dropQuarantine({ keys: [key] });
      return false;
    }
    const records = encodeRecords([{ event, handling: { released: true } }]);
    const done = await this.#store.release(key, { records }, this.#options.clock.now());
    this.#last.advance(done.lastSeq);
    return done.released;
  }

  async listEntries(kind: SetAsideKind, selection: Selection): Promise<readonly SetAsideEntry[]> {
    await this.#store.retention.save();
    return this.#store.asideEntries.list(kind, selection);
  }

  /** Replaced by a receiver with a log of receipts: has the log take all events before an erasure overwrites some. */
  coverReceipts: () => Promise<void> = async () => {
    const covered = await this.receipts.upTo();
    if (covered !== null && covered < this.#last.seq)
      throw new MillraceError('receipts_behind', 'start the receiver once, and erase then');
  };

  /** No event of the subjects may be in flight. */
  async erase(run: ErasureRun): Promise<void> {
    await this.coverReceipts();
    // An event that a sink has confirmed does not count as erased before it came there.
    await this.flush();
    await this.#store.retention.save();
    this.#tail.clear();
    await eraseSubjects(this.#store.eraser, run, this.name, this.#isAlone());
  }

  /** Forgets the ids of events that other stores erase; their records may be gone from here. */
  async forget(events: readonly RemovedEvent[]): Promise<void> {
    await forgetEvents(this.#store.eraser, events);
  }

  async forgotten(signal: AbortSignal): Promise<void> {
    const { eraser } = this.#store;
    const first = await eraser.firstStepAfterForgetting();
    await performSteps(eraser, [], first, this.#isAlone(), { signal });
  }

  /** The receipts of the subjects have the counts. */
  async erased(subjects: readonly Subject[]): Promise<void> {
    await this.#store.eraser.forgetRequests(subjects.map(({ request }) => request));
  }

  async close(): Promise<void> {
    if (this.#mode === 'closing' || this.#mode === 'closed') return;
    const isOpen = this.#mode === 'open';
    if (isOpen) this.#mode = 'closing';
    this.#upkeep.stop();
    this.#late.stop();
    if (isOpen) {
      await this.#tryFlush();
      clearOwner(this.#options.path);
    }
    this.#mode = 'closed';
    await this.#writer.close();
  }

  #forgetCursor(sink: string): void {
    this.#cursors.delete(sink);
    this.#removed.add(sink);
    this.#late.forget(sink);
  }

  /** Without sinks no events come in. */
  #isAlone(): boolean {
    return this.#cursors.size === 0;
  }

  #add(entry: Entry): Promise<AppendResult> {
    return this.#mode === 'open' ? this.#commits.add(entry) : Promise.reject(this.#unavailable());
  }

  /** What cannot be written now is written later. */
  #tryFlush(): Promise<void> {
    return this.flush().catch(() => undefined);
  }

  #fail(error: MillraceError): void {
    this.#mode = 'failed';
    this.#upkeep.stop();
    this.#late.stop();
    this.#commits.rejectAll(error);
    this.#options.onFailure(error);
  }

  #unavailable(): MillraceError {
    return new MillraceError('journal_failed', `the journal is ${this.#mode}`);
  }
}
