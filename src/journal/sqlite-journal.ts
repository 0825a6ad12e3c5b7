import type { Clock } from '../core/clock.ts';
import type { ErasableStore, ErasureRun, Subject, TakenOut } from '../core/erasure.ts';
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
import { remoteOf, type Remote } from '../lib/remote.ts';
import { committing } from './commit.ts';
import type { Damage } from './damages.ts';
import { eraseFrom, forgetIn, perform } from './run-erasure.ts';
import { GroupCommit, type Entry } from './group-commit.ts';
import { unpackHeads } from './segments/heads.ts';
import { LateWrites } from './late-writes.ts';
import type { Repair } from './mend.ts';
import { clearOwner } from './owner.ts';
import type { JournalOptions } from './protocol.ts';
import { decodeRecords, encodeRecords, eventsOf } from './segments/records.ts';
import type { Store } from './store.ts';
import { Tail, Newest } from './tail.ts';
import { Upkeep } from './upkeep.ts';
import { WriterThread, type Writer } from './writer-thread.ts';

export interface SqliteJournalOptions extends JournalOptions {
  readonly clock: Clock;
  /** Called once when the journal can no longer be trusted; the process must end. */
  readonly onFailure: (error: MillraceError) => void;
  /** Told of each group commit: how many events, and milliseconds from handing them over to the answer. */
  readonly onCommit?: (events: number, durationMs: number) => void;
  /** Events of erased users become no dead letters, and are not released: what comes in is not asked about here. */
  readonly isErased?: IsErased;
  /** Told of each record that is not what was written; it is in quarantine if it could be read. */
  readonly onDamage?: (record: Damage) => void;
  /** Told of what the start found damaged or gone. */
  readonly onRepair?: (repair: Repair) => void;
  /** Bytes of newest events kept in memory for sinks that keep up. */
  readonly tailBytes?: number;
  /** False for a command, which leaves clearing away what is past its time to the receiver. */
  readonly maintained?: boolean;
}

/**
 * The journal on this machine's disk, main-thread side.
 *
 * Modes: open → failed (a write went wrong in a way that is not "full": every call rejects, `onFailure` has been
 * called) or open → closing → closed. `#mode` changes in `#fail` and `close` only.
 * Events of one turn of the event loop share a commit; while one commit runs the next gathers. The whole port is in this
 * file, because each call is a line or two between this thread and the writer's.
 */
export class SqliteJournal implements Journal, ErasableStore {
  readonly name = 'journal';
  readonly #writer: Writer;
  readonly #store: Remote<Store>;
  readonly #options: SqliteJournalOptions;
  readonly #tail: Tail;
  readonly #late: LateWrites;
  /** Where each sink of this run stands. */
  readonly #floors = new Map<string, number>();
  readonly #commits: GroupCommit;
  readonly #newest: Newest;
  #mode: 'open' | 'failed' | 'closing' | 'closed' = 'open';
  readonly #upkeep: Upkeep;

  /** @param writer what `open` starts; another only where no thread is wanted, as in simulations */
  constructor(writer: Writer, options: SqliteJournalOptions) {
    this.#writer = writer;
    this.#store = remoteOf<Store>((call) => writer.call(call));
    this.#options = options;
    this.#newest = new Newest(writer.lastSeq, (error) => this.#fail(error));
    this.#tail = new Tail(options.tailBytes ?? 32 * 1024 * 1024);
    this.#late = new LateWrites(this.#store, options.clock);
    this.#upkeep = new Upkeep(this.#store, options.clock, options.maintained !== false);
    const parts = { store: this.#store, tail: this.#tail, newest: this.#newest, upkeep: this.#upkeep };
    const { clock, onCommit } = options;
    this.#commits = new GroupCommit(committing({ ...parts, clock, onCommit }), clock);
  }

  /** @throws MillraceError journal_in_use, journal_missing, journal_damaged, journal_unreadable, folder_unwritable */
  static async open(options: SqliteJournalOptions): Promise<SqliteJournal> {
    const writer = await WriterThread.start(options, (error) => journal.#fail(error));
    const journal = new SqliteJournal(writer, options);
    for (const repair of writer.repairs) options.onRepair?.(repair);
    return journal;
  }

  get lastSeq(): number {
    return this.#newest.seq;
  }

  // What the writer thread does alone.
  get receipts(): Remote<Store>['receipts'] {
    return this.#store.receipts;
  }

  get checkpoints(): Journal['checkpoints'] {
    return this.#store.checkpoints;
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
  readonly troubles: Upkeep['troubles'] = () => this.#upkeep.troubles();

  accept(event: Event, { handling, dedupKey }: IngestOptions = {}): Promise<AppendResult> {
    return this.#enqueue({ event, handling, invalid: null, dedupKey });
  }

  quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    { dedupKey }: IngestOptions = {},
  ): Promise<AppendResult> {
    return this.#enqueue({ event, handling: undefined, invalid: JSON.stringify(reasons), dedupKey });
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
    if (after >= this.#newest.seq) return [];
    const recent = this.#tail.read(after, limits);
    if (recent !== null) return recent;
    const page = await this.#store.read(after, limits, this.#options.clock.now());
    for (const record of page.damaged) this.#options.onDamage?.(record);
    return eventsOf(page);
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    return this.#newest.subscribe(listener);
  }

  async openCursor(sink: string): Promise<number> {
    await this.#tryFlush();
    const seq = await this.#store.cursors.open(sink);
    this.#floors.set(sink, seq);
    return seq;
  }

  releaseCursor(sink: string, forget = false): void {
    this.#store.cursors.release(sink, forget).catch(() => undefined);
  }

  moveCursor(sink: string, seq: number, note?: () => string | null): void {
    this.#floors.set(sink, seq);
    this.#tail.drop(Math.min(...this.#floors.values()));
    this.#late.move(sink, seq, note);
  }

  passedOver(sink: string, { seq, receivedAt, handling }: JournalEvent): void {
    // What a replay sends is not counted as received.
    if (handling.replayId === undefined) this.#late.passedOver([sink, seq, receivedAt]);
  }

  readonly flush = (): Promise<void> => this.#late.flush();

  async cursors(): Promise<readonly (readonly [sink: string, seq: number])[]> {
    await this.#tryFlush();
    return this.#store.cursors.known();
  }

  async succeed(from: string, to: string): Promise<RouteRecord> {
    await this.flush();
    this.#floors.delete(from);
    return this.#store.cursors.succeed(from, to);
  }

  async leave(sink: string): Promise<RouteRecord> {
    await this.flush();
    this.#floors.delete(sink);
    return this.#store.cursors.leave(sink);
  }

  async status(): Promise<JournalStatus> {
    await this.#tryFlush();
    return { ...(await this.#store.status(this.#options.clock.now())), ...this.#upkeep.told() };
  }

  async account(since: number, until: number): Promise<JournalAccount> {
    await this.#tryFlush();
    return this.#store.account(since, until);
  }

  async addDeadLetter({ event, ...letter }: Omit<DeadLetter, 'key'>): Promise<void> {
    if (this.#options.isErased?.(event) === true) return this.passedOver(letter.sink, event);
    const records = encodeRecords([{ event, handling: event.handling }]);
    await this.#store.addDeadLetter({ ...letter, seq: event.seq }, { records });
  }

  async listDeadLetters(selection: SetAsideSelection, bodies = true): Promise<readonly DeadLetter[]> {
    const { about, records } = await this.#store.setAside.list(selection, bodies);
    return decodeRecords(records).map((event, index) => {
      const { seq, ...letter } = about[index] as (typeof about)[number];
      return { ...letter, event: { ...event, seq } };
    });
  }

  async retryDeadLetters(selection: Selection): Promise<number> {
    const done = await this.#store.retryDeadLetters(selection, this.#options.clock.now());
    this.#newest.reach(done.lastSeq);
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
    // Looked at anew, it may turn out to be of a user who has been erased since.
    if (this.#options.isErased?.(event) === true) {
      await this.dropQuarantine({ keys: [key] });
      return false;
    }
    const records = encodeRecords([{ event, handling: { released: true } }]);
    const done = await this.#store.release(key, { records }, this.#options.clock.now());
    this.#newest.reach(done.lastSeq);
    return done.released;
  }

  async listEntries(kind: SetAsideKind, selection: Selection): Promise<readonly SetAsideEntry[]> {
    await this.#store.saveProgress();
    return this.#store.asideEntries.list(kind, selection);
  }

  /** Has the log of receipts take all that is there, before an erasure overwrites some of it. */
  coverReceipts: () => Promise<void> = async () => {
    const held = await this.receipts.upTo();
    if (held !== null && held < this.#newest.seq)
      throw new MillraceError('receipts_behind', 'start the receiver once, and erase then');
  };

  /** Nothing of the subjects may be in flight. */
  async erase(run: ErasureRun): Promise<void> {
    await this.coverReceipts();
    // What a sink has confirmed is not noted as erased before it came there.
    await this.flush();
    await this.#store.saveProgress();
    this.#tail.clear();
    // Without sinks nothing comes in.
    await eraseFrom(this.#store, run, this.name, this.#floors.size === 0);
  }

  /** What other stores had of the subjects: it may be gone from here, and what stands for the bodies not. */
  async forget(events: readonly TakenOut[]): Promise<void> {
    await forgetIn(this.#store, events);
  }

  async forgotten(signal: AbortSignal): Promise<void> {
    await perform(this.#store, [], { do: 'forgotten' }, this.#floors.size === 0, signal);
  }

  /** The receipts have the counts. */
  async erased(subjects: readonly Subject[]): Promise<void> {
    await this.#store.eraser.perform(subjects, { do: 'forget' });
  }

  async close(): Promise<void> {
    if (this.#mode === 'closing' || this.#mode === 'closed') return;
    const failed = this.#mode === 'failed';
    if (!failed) this.#mode = 'closing';
    this.#upkeep.stop();
    this.#late.stop();
    if (!failed) {
      await this.#tryFlush();
      clearOwner(this.#options.path);
    }
    this.#mode = 'closed';
    await this.#writer.close();
  }

  #enqueue(entry: Entry): Promise<AppendResult> {
    return this.#mode === 'open' ? this.#commits.add(entry) : Promise.reject(this.#unavailable());
  }

  /** What is late can also be written later. */
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
