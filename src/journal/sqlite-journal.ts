import type { Clock } from '../core/clock.ts';
import type { ErasableStore, ErasureRun, Subject } from '../core/erasure.ts';
import { MillraceError } from '../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { AppendResult, IngestOptions, IsErased, Unfitness } from '../core/ingest.ts';
import type {
  Burial,
  DeadLetter,
  EventHead,
  Journal,
  JournalAccount,
  JournalStatus,
  QuarantinedEvent,
  Selection,
} from '../core/journal.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import type { CheckpointStore } from '../core/source.ts';
import { eraseFrom } from './erasure.ts';
import { GroupCommit, type Waiting } from './group-commit.ts';
import { clearOwner } from './owner.ts';
import { NO_HANDLING, pack, unpack } from './protocol.ts';
import type { Answers, JournalOptions } from './protocol.ts';
import { Tail } from './tail.ts';
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
  readonly onDamage?: (record: { readonly seq: number; readonly id: string | null }) => void;
  /** Bytes of newest events kept in memory for sinks that keep up. */
  readonly tailBytes?: number;
}

const CURSOR_DELAY = 200;
const MAINTAIN_EVERY = 5_000;

/**
 * The journal on SQLite, main-thread side.
 *
 * Modes: open → failed (a write went wrong in a way that is not "full": every call rejects, `onFailure` has been
 * called) or open → closing → closed. `#mode` changes in `#fail` and `close` only.
 * Events of one turn of the event loop share a commit; while one commit runs the next gathers.
 */
export class SqliteJournal implements Journal, ErasableStore {
  readonly name = 'journal';
  readonly #thread: Writer;
  readonly #options: SqliteJournalOptions;
  readonly #tail: Tail;
  readonly #listeners = new Set<(lastSeq: number) => void>();
  /** Moves that are not written yet. */
  readonly #cursors = new Map<string, number>();
  /** Where each sink of this run stands. */
  readonly #floors = new Map<string, number>();
  readonly #commits = new GroupCommit((batch) => this.#commit(batch));
  /** When events of erased users came that are not counted yet. */
  readonly #dropped: number[] = [];
  #lastSeq: number;
  #mode: 'open' | 'failed' | 'closing' | 'closed' = 'open';
  #stopCursorTimer: (() => void) | null = null;
  #stopMaintenance: () => void = () => {};

  /** @param thread what `open` starts; another only where no thread is wanted, as in simulations */
  constructor(thread: Writer, options: SqliteJournalOptions) {
    this.#thread = thread;
    this.#options = options;
    this.#lastSeq = thread.lastSeq;
    this.#tail = new Tail(options.tailBytes ?? 32 * 1024 * 1024);
    this.#scheduleMaintenance(MAINTAIN_EVERY);
  }

  /** @throws MillraceError journal_in_use, journal_missing, journal_unreadable, folder_unwritable */
  static async open(options: SqliteJournalOptions): Promise<SqliteJournal> {
    const thread = await WriterThread.start(options, (error) => journal.#fail(error));
    const journal = new SqliteJournal(thread, options);
    return journal;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  accept(event: Event, options?: IngestOptions): Promise<AppendResult> {
    return this.#enqueue(event, options?.handling, null, options?.dedupKey ?? null);
  }

  quarantine(event: Event, reasons: readonly Unfitness[], options?: IngestOptions): Promise<AppendResult> {
    return this.#enqueue(event, undefined, JSON.stringify(reasons), options?.dedupKey ?? null);
  }

  countErased(event: Event): Promise<AppendResult> {
    if (this.#mode !== 'open') return Promise.reject(this.#unavailable());
    this.#dropped.push(event.receivedAt);
    this.#scheduleFlush();
    return Promise.resolve({ status: 'erased' });
  }

  async read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    if (after >= this.#lastSeq) return [];
    const recent = this.#tail.read(after, limits);
    if (recent !== null) return recent;
    const now = this.#options.clock.now();
    const packed = await this.#thread.call('read', { op: 'read', after, ...limits, now });
    for (const record of packed.damaged) this.#options.onDamage?.(record);
    return unpack(packed, packed.seqs);
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async openCursor(sink: string): Promise<number> {
    const seq = await this.#thread.call('openCursor', {
      op: 'openCursor',
      sink,
      now: this.#options.clock.now(),
    });
    this.#floors.set(sink, seq);
    return seq;
  }

  routes(): Promise<RouteRecord> {
    return this.#thread.call('routes', { op: 'routes' });
  }

  acceptUnder(routes: readonly Route[]): Promise<RouteRecord> {
    return this.#thread.call('acceptUnder', { op: 'acceptUnder', routes });
  }

  async cursors(): Promise<readonly (readonly [sink: string, seq: number])[]> {
    await this.flush().catch(() => undefined);
    return this.#thread.call('cursors', { op: 'cursors' });
  }

  async succeed(from: string, to: string): Promise<RouteRecord> {
    await this.flush();
    this.#floors.delete(from);
    return this.#thread.call('succeed', { op: 'succeed', from, to });
  }

  async leave(sink: string): Promise<RouteRecord> {
    await this.flush();
    this.#floors.delete(sink);
    return this.#thread.call('leave', { op: 'leave', sink });
  }

  bury(burial: Burial): Promise<number> {
    return this.#thread.call('bury', { op: 'bury', ...burial });
  }

  releaseCursor(sink: string, forget = false): void {
    this.#thread.call('releaseCursor', { op: 'releaseCursor', sink, forget }).catch(() => undefined);
  }

  moveCursor(sink: string, seq: number): void {
    this.#cursors.set(sink, seq);
    this.#floors.set(sink, seq);
    this.#tail.drop(Math.min(...this.#floors.values()));
    this.#scheduleFlush();
  }

  async flush(): Promise<void> {
    const dropped = this.#dropped.splice(0);
    if (dropped.length > 0)
      await this.#thread
        .call('countErased', { op: 'countErased', receivedAt: dropped })
        .catch((error: unknown) => {
          this.#dropped.push(...dropped);
          throw error;
        });
    const cursors = [...this.#cursors];
    if (cursors.length === 0) return;
    await this.#thread.call('moveCursors', { op: 'moveCursors', cursors, now: this.#options.clock.now() });
    for (const [sink, seq] of cursors) if (this.#cursors.get(sink) === seq) this.#cursors.delete(sink);
  }

  readonly checkpoints: CheckpointStore = {
    load: (key) => this.#thread.call('loadCheckpoint', { op: 'loadCheckpoint', key }),
    save: async (key, value) =>
      void (await this.#thread.call('saveCheckpoint', { op: 'saveCheckpoint', key, value })),
  };

  async status(): Promise<JournalStatus> {
    await this.flush().catch(() => undefined);
    return this.#thread.call('status', { op: 'status', now: this.#options.clock.now() });
  }

  async addDeadLetter(letter: Omit<DeadLetter, 'key'>): Promise<void> {
    const { event, ...rest } = letter;
    if (this.#options.isErased?.(event) === true) return;
    await this.#thread.call('addDeadLetter', {
      op: 'addDeadLetter',
      letter: { ...rest, seq: event.seq },
      event: pack([{ event, handling: event.handling }]),
    });
  }

  async listDeadLetters(selection: Selection, bodies = true): Promise<readonly DeadLetter[]> {
    const found = await this.#thread.call('listDeadLetters', {
      op: 'listDeadLetters',
      selection,
      whole: bodies,
    });
    return zip(found.letters, unpack(found, [])).map(([{ seq, ...letter }, event], index) => {
      return { key: found.keys[index] ?? 0, ...letter, event: { ...event, seq }, ...sizeAt(found, index) };
    });
  }

  async retryDeadLetters(selection: Selection): Promise<number> {
    const { count, lastSeq } = await this.#thread.call('retryDeadLetters', {
      op: 'retryDeadLetters',
      selection,
    });
    this.#announce(lastSeq);
    return count;
  }

  dropDeadLetters(selection: Selection): Promise<number> {
    return this.#thread.call('dropDeadLetters', { op: 'dropDeadLetters', selection });
  }

  async listQuarantine(selection: Selection, bodies = true): Promise<readonly QuarantinedEvent[]> {
    const found = await this.#thread.call('listQuarantine', {
      op: 'listQuarantine',
      selection,
      whole: bodies,
    });
    return zip(found.unfit, unpack(found, [])).map(([unfit, event], index) => {
      const reasons = JSON.parse(unfit) as Unfitness[];
      return { ...event, key: found.keys[index] ?? 0, reasons, ...sizeAt(found, index) };
    });
  }

  async release(key: number, event: Event): Promise<void> {
    // Looked at anew, it may turn out to be of a user who has been erased since.
    if (this.#options.isErased?.(event) === true) return void (await this.dropQuarantine({ keys: [key] }));
    this.#announce(await this.#thread.call('release', { op: 'release', key, event: pack([{ event }]) }));
  }

  dropQuarantine(selection: Selection): Promise<number> {
    return this.#thread.call('dropQuarantine', { op: 'dropQuarantine', selection });
  }

  settled(): Promise<void> {
    return this.#commits.settled();
  }

  /** Nothing of the subjects may be under way. */
  async erase(run: ErasureRun): Promise<void> {
    this.#tail.clear();
    // Without sinks nothing comes in.
    await eraseFrom(this.#thread, run, this.name, this.#floors.size === 0);
  }

  /** The receipts have the counts. */
  async erased(subjects: readonly Subject[]): Promise<void> {
    await this.#thread.call('erase', { op: 'erase', subjects, step: { do: 'forget' } });
  }

  heads(after: number): Promise<readonly EventHead[]> {
    return this.#thread.call('heads', { op: 'heads', after });
  }

  async account(since: number, until: number): Promise<JournalAccount> {
    await this.flush().catch(() => undefined);
    return this.#thread.call('account', { op: 'account', since, until });
  }

  async close(): Promise<void> {
    if (this.#mode === 'closing' || this.#mode === 'closed') return;
    const failed = this.#mode === 'failed';
    if (!failed) this.#mode = 'closing';
    this.#stopMaintenance();
    this.#stopCursorTimer?.();
    if (!failed) {
      await this.flush().catch(() => undefined);
      clearOwner(this.#options.path);
    }
    this.#mode = 'closed';
    await this.#thread.close();
  }

  #enqueue(
    event: Event,
    handling: Handling | undefined,
    unfit: string | null,
    dedupKey: string | null,
  ): Promise<AppendResult> {
    if (this.#mode !== 'open') return Promise.reject(this.#unavailable());
    return this.#commits.add({ event, handling, unfit, dedupKey });
  }

  /** Never rejects: whoever waits is told. */
  async #commit(batch: readonly Waiting[]): Promise<void> {
    const { clock, onCommit } = this.#options;
    const started = clock.monotonic();
    try {
      const answers = await this.#thread.call('append', {
        op: 'append',
        ...pack(batch),
        unfit: batch.map(({ unfit }) => unfit),
        keys: batch.map(({ dedupKey }) => dedupKey),
        now: clock.now(),
      });
      onCommit?.(batch.length, clock.monotonic() - started);
      this.#answer(batch, answers);
    } catch (error) {
      for (const { reject } of batch) reject(error as MillraceError);
    }
  }

  #answer(batch: readonly Waiting[], answers: Answers['append']): void {
    let lastSeq = 0;
    for (const [waiting, seq] of zip(batch, answers)) {
      if (seq > 0) {
        lastSeq = seq;
        const { event, handling } = waiting;
        this.#tail.push({ ...event, seq, handling: handling ?? NO_HANDLING });
      }
      waiting.resolve(resultOf(seq));
    }
    if (lastSeq > 0) this.#announce(lastSeq);
  }

  #announce(lastSeq: number): void {
    if (lastSeq <= this.#lastSeq) return;
    this.#lastSeq = lastSeq;
    for (const listener of this.#listeners) listener(lastSeq);
  }

  #fail(error: MillraceError): void {
    this.#mode = 'failed';
    this.#commits.rejectAll(error);
    this.#options.onFailure(error);
  }

  #unavailable(): MillraceError {
    return new MillraceError('journal_failed', `the journal is ${this.#mode}`);
  }

  /** A cursor that is a little behind costs repeated deliveries after a crash, never a loss, so it may wait. */
  #scheduleFlush(): void {
    this.#stopCursorTimer ??= this.#options.clock.after(CURSOR_DELAY, () => {
      this.#stopCursorTimer = null;
      // On a full disk the move is kept in memory and tried again, and not only with the next one: a journal that is
      // full gets no next one until the moves it has are known to the writer.
      this.flush().catch(() => {
        if (this.#mode === 'open') this.#scheduleFlush();
      });
    });
  }

  #scheduleMaintenance(delay: number): void {
    this.#stopMaintenance = this.#options.clock.after(delay, () => {
      if (this.#mode !== 'open') return;
      this.#thread.call('maintain', { op: 'maintain', now: this.#options.clock.now() }).then(
        (more) => this.#scheduleMaintenance(more ? 50 : MAINTAIN_EVERY),
        () => this.#scheduleMaintenance(MAINTAIN_EVERY),
      );
    });
  }
}

/** Where bodies were left out, how large the body is. */
function sizeAt(
  { bodyBytes }: Pick<Answers['listQuarantine'], 'bodyBytes'>,
  index: number,
): { readonly bodyBytes?: number } {
  return bodyBytes === null ? {} : { bodyBytes: bodyBytes[index] ?? 0 };
}

function resultOf(seq: number): AppendResult {
  if (seq === 0) return { status: 'duplicate' };
  return seq === -2 ? { status: 'reused' } : { status: 'accepted', seq };
}

function zip<A, B>(left: readonly A[], right: readonly B[]): [A, B][] {
  return left.map((value, index) => [value, right[index] as B]);
}
