import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { DeadLetter, EventLog } from '../core/journal.ts';
import { pageOf } from '../core/page.ts';
import { Bell } from './bell.ts';

/** An event that a sink has refused for good. */
export type Refusal = Omit<DeadLetter, 'key'>;

export interface ReplayLogOptions {
  /** Events and body bytes that may be between the reader and the slowest sink. */
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** What it resolves for is noted durably. */
  readonly onRefused: (refusal: Refusal) => Promise<void>;
  /** Called when everything up to a seq is settled at every sink. */
  readonly onSettled: (seq: number) => void;
}

/**
 * Memory in the journal's place: what is read from an archive waits here for its sinks, within bounds. Nothing in it
 * outlives the process, and nothing needs to, for the archive is still there: how far every sink is, is what a replay
 * remembers.
 */
export class ReplayLog implements EventLog {
  readonly #options: ReplayLogOptions;
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #cursors = new Map<string, number>();
  /** Contiguous by seq; the first one is `#firstSeq`. */
  #entries: JournalEvent[] = [];
  #firstSeq = 1;
  #bytes = 0;
  readonly #bell = new Bell();

  constructor(options: ReplayLogOptions) {
    this.#options = options;
  }

  get lastSeq(): number {
    return this.#firstSeq + this.#entries.length - 1;
  }

  /** Everything up to and including this seq is settled at every sink. */
  get settled(): number {
    return Math.min(this.lastSeq, ...this.#cursors.values());
  }

  /** Only when there is room. @returns its seq */
  append(event: Event, handling: Handling): number {
    const seq = this.lastSeq + 1;
    this.#entries.push({ ...event, seq, handling });
    this.#bytes += event.body.length;
    for (const listener of this.#listeners) listener(seq);
    return seq;
  }

  /** Resolves when another event may be appended. @throws the signal's reason */
  async room(signal: AbortSignal): Promise<void> {
    const { maxEvents, maxBytes } = this.#options;
    await this.#bell.until(() => this.#entries.length < maxEvents && this.#bytes < maxBytes, signal);
  }

  /** Resolves when all of it is settled. @throws the signal's reason */
  async idle(signal: AbortSignal): Promise<void> {
    await this.#bell.until(() => this.settled === this.lastSeq, signal);
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const from = Math.max(0, after + 1 - this.#firstSeq);
    return Promise.resolve(pageOf(this.#entries, from, limits, (event) => event));
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  openCursor(sink: string): Promise<number> {
    const seq = this.settled;
    this.#cursors.set(sink, seq);
    return Promise.resolve(seq);
  }

  releaseCursor(): void {
    // A sink that is let go of has settled nothing by that.
  }

  moveCursor(sink: string, seq: number): void {
    this.#cursors.set(sink, seq);
    const { settled } = this;
    const count = settled - this.#firstSeq + 1;
    if (count <= 0) return;
    for (const { body } of this.#entries.slice(0, count)) this.#bytes -= body.length;
    this.#entries = this.#entries.slice(count);
    this.#firstSeq += count;
    this.#options.onSettled(settled);
    this.#bell.ring();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  addDeadLetter(refusal: Refusal): Promise<void> {
    return this.#options.onRefused(refusal);
  }
}
