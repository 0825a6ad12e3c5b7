import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { DeadLetter, EventLog, JournalStatus } from '../core/journal.ts';
import { pageOf } from '../core/page.ts';
import { Bell } from '../lib/bell.ts';

interface MemoryLogOptions {
  /** Events and body bytes that may wait. `append` does not check them: its caller asks `hasRoom`, or waits for `room`. */
  readonly maxEvents?: number;
  readonly maxBytes: number;
  /** Records what would be a dead letter in a journal; the event is settled once this resolves. */
  readonly onRefused?: (refusal: Refusal) => Promise<void>;
  /** Called when everything up to a seq is settled at every sink. */
  readonly onSettled?: (seq: number) => void;
}

/** An event that a sink will never accept. */
export type Refusal = Omit<DeadLetter, 'key'>;

/**
 * A journal in memory: events wait for their sinks, within bounds, until all are past them. Nothing survives the process, and
 * nothing needs to: the caller of `append` keeps its event until that is settled.
 */
export class MemoryLog implements EventLog {
  readonly #options: MemoryLogOptions;
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #cursors = new Map<string, number>();
  /** Without gaps; the first one has `#firstSeq`. */
  #events: JournalEvent[] = [];
  #firstSeq = 1;
  #bytes = 0;
  readonly #bell = new Bell();

  constructor(options: MemoryLogOptions) {
    this.#options = options;
  }

  get lastSeq(): number {
    return this.#firstSeq + this.#events.length - 1;
  }

  /** Everything up to and including this seq is settled at every sink. */
  get settledSeq(): number {
    return Math.min(this.lastSeq, ...this.#cursors.values());
  }

  get waiting(): { readonly events: number; readonly bytes: number } {
    return { events: this.#events.length, bytes: this.#bytes };
  }

  status(): Promise<JournalStatus> {
    const { lastSeq } = this;
    return Promise.resolve({
      path: '(memory)',
      firstSeq: this.#firstSeq,
      lastSeq,
      ...this.waiting,
      maxBytes: 0,
      quarantined: 0,
      deadLetters: 0,
      damaged: 0,
      cursors: Array.from(this.#cursors, ([sink, seq]) => {
        return { sink, seq, backlog: lastSeq - seq, backlogBytes: 0, backlogAge: 0 };
      }),
    });
  }

  get hasRoom(): boolean {
    const { maxEvents = Infinity, maxBytes } = this.#options;
    return this.#events.length < maxEvents && this.#bytes < maxBytes;
  }

  hasCursor(sink: string): boolean {
    return this.#cursors.has(sink);
  }

  append(event: Event, handling: Handling): JournalEvent {
    const stored = { ...event, seq: this.lastSeq + 1, handling };
    this.#events.push(stored);
    this.#bytes += event.body.length;
    for (const listener of this.#listeners) listener(stored.seq);
    return stored;
  }

  /** Resolves when there is room. @throws the signal's reason */
  async room(signal: AbortSignal): Promise<void> {
    await this.#bell.until(() => this.hasRoom, signal);
  }

  /** Resolves when all of it is settled. @throws the signal's reason */
  async idle(signal: AbortSignal): Promise<void> {
    await this.#bell.until(() => this.settledSeq === this.lastSeq, signal);
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const from = Math.max(0, after + 1 - this.#firstSeq);
    return Promise.resolve(pageOf(this.#events, from, limits));
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  openCursor(sink: string): Promise<number> {
    this.#cursors.set(sink, this.lastSeq);
    return Promise.resolve(this.lastSeq);
  }

  releaseCursor(sink: string): void {
    const cursor = this.#cursors.get(sink) ?? this.lastSeq;
    this.#cursors.delete(sink);
    this.passed(sink, this.#firstSeq, this.lastSeq);
    this.left(
      sink,
      this.#events.filter(({ seq }) => seq > cursor),
    );
    this.forget();
  }

  moveCursor(sink: string, seq: number): void {
    const before = this.#cursors.get(sink);
    // A late call of a sink that was removed, and may be there again, says nothing of its new cursor.
    if (before === undefined || seq <= before) return;
    this.#cursors.set(sink, seq);
    this.passed(sink, before + 1, seq);
    this.forget();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  async addDeadLetter(refusal: Refusal): Promise<void> {
    await this.#options.onRefused?.(refusal);
  }

  /** A sink has settled these, or was removed and never gets them. */
  protected passed(_sink: string, _from: number, _to: number): void {}

  /** A sink was removed that has not settled all of these. */
  protected left(_sink: string, _events: readonly JournalEvent[]): void {}

  /** Whether an event that is not settled may be forgotten when there is no room. */
  protected maySkip(_seq: number): boolean {
    return false;
  }

  /** A sink will not get some events, because there was no room for them. */
  protected skipped(_sink: string, _events: number): void {}

  /** Forgets what every sink has settled; without room also what may be skipped. */
  protected forget(): void {
    const settled = this.settledSeq;
    let count = 0;
    for (const { seq, body } of this.#events) {
      if (seq > settled && (this.hasRoom || !this.maySkip(seq))) break;
      this.#bytes -= body.length;
      count += 1;
    }
    if (count === 0) return;
    this.#events = this.#events.slice(count);
    this.#firstSeq += count;
    const last = this.#firstSeq - 1;
    for (const [sink, seq] of this.#cursors) {
      if (seq >= last) continue;
      this.skipped(sink, last - seq);
      this.#cursors.set(sink, last);
    }
    this.#options.onSettled?.(last);
    this.#bell.ring();
  }
}
