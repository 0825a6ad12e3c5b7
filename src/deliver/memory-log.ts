import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { DeadLetter, EventLog, JournalStatus } from '../core/journal.ts';
import { pageOf } from '../core/page.ts';
import { Bell } from '../lib/bell.ts';

export interface MemoryLogOptions {
  /** Events and body bytes that may wait; whether there is room is up to whoever appends more. */
  readonly maxEvents?: number;
  readonly maxBytes: number;
  /** An event that a sink has refused for good; what it resolves for is dealt with. */
  readonly onRefused?: (refusal: Refusal) => Promise<void>;
  /** Called when everything up to a seq is settled at every sink. */
  readonly onSettled?: (seq: number) => void;
}

/** An event that a sink has refused for good. */
export type Refusal = Omit<DeadLetter, 'key'>;

/**
 * Memory in the journal's place: events wait here for their sinks, within bounds, until all are past them. Nothing in it
 * outlives the process, and nothing needs to: whoever handed an event in has it until it is said to be settled.
 */
export class MemoryLog implements EventLog {
  readonly #options: MemoryLogOptions;
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #cursors = new Map<string, number>();
  /** Contiguous by seq; the first one is `#firstSeq`. */
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
    // From a sink that is gone, and may even be back: what was on its way is not what it stands for now.
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

  /** A sink has moved on, or is gone: it is past these, or never gets to them. */
  protected passed(_sink: string, _from: number, _to: number): void {}

  /** A sink is gone that has not had all of these. */
  protected left(_sink: string, _events: readonly JournalEvent[]): void {}

  /** Whether an event that sinks wait for may be forgotten when there is no room. */
  protected maySkip(_seq: number): boolean {
    return false;
  }

  /** A sink will not get some events, because memory could not wait for it. */
  protected skipped(_sink: string, _events: number): void {}

  /** Forgets what every sink is past; without room also what may be skipped. */
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
