import { MillraceError } from '../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { AppendResult, DeadLetter, EventLog } from '../core/journal.ts';
import type { Target } from '../core/route.ts';

export interface DirectLogOptions {
  /** Whether a sink must confirm before an event is answered; the others get it as well as they can take it. */
  readonly isRequired: (sink: string) => boolean;
  readonly targetsOf: (event: Pick<JournalEvent, 'type' | 'handling'>) => readonly Target[];
  /** Body bytes that may wait; above it new events are rejected. */
  readonly maxBytes: number;
  /** Told how many events a best-effort sink will not get, because memory could not wait for it. */
  readonly onSkipped: (sink: string, events: number) => void;
}

interface Entry {
  readonly event: JournalEvent;
  /** Deliveries that required sinks have still to confirm. */
  open: number;
  readonly confirmed: PromiseWithResolvers<AppendResult>;
}

/** Ids answered in this process that are remembered, so that an early repetition is not forwarded again. */
const REMEMBERED = 100_000;

/**
 * Memory in the journal's place, for `acknowledge: delivered`: an event is answered when every required sink has
 * confirmed it, and forgotten then. Nothing here survives the process, and nothing needs to: what was not confirmed was
 * not acknowledged, so the sender has it. A repetition that comes while the first attempt is still on its way waits
 * for the same confirmation.
 */
export class DirectLog implements EventLog {
  readonly #options: DirectLogOptions;
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #cursors = new Map<string, number>();
  readonly #byId = new Map<string, Entry>();
  readonly #answered = new Set<string>();
  /** Contiguous by seq; the first one is `#firstSeq`. */
  #entries: Entry[] = [];
  #firstSeq = 1;
  #lastSeq = 0;
  #bytes = 0;

  constructor(options: DirectLogOptions) {
    this.#options = options;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get waiting(): { readonly events: number; readonly bytes: number } {
    return { events: this.#entries.length, bytes: this.#bytes };
  }

  /**
   * Resolves when every required sink has confirmed.
   * @throws MillraceError backlog_full; sink_refused when a required sink will never take it
   */
  append(event: Event, handling: Handling = {}): Promise<AppendResult> {
    if (this.#answered.has(event.id)) return Promise.resolve({ status: 'duplicate' });
    const known = this.#byId.get(event.id);
    if (known !== undefined) return known.confirmed.promise.then(() => ({ status: 'duplicate' }));
    this.#trim();
    if (this.#bytes >= this.#options.maxBytes) {
      return Promise.reject(
        new MillraceError('backlog_full', `${this.#bytes} bytes wait for required sinks`),
      );
    }
    this.#lastSeq += 1;
    const stored: JournalEvent = { ...event, seq: this.#lastSeq, handling };
    const open = this.#options.targetsOf(stored).filter(({ sink }) => this.#options.isRequired(sink)).length;
    const entry: Entry = { event: stored, open, confirmed: Promise.withResolvers() };
    entry.confirmed.promise.catch(() => undefined);
    this.#entries.push(entry);
    this.#byId.set(event.id, entry);
    this.#bytes += event.body.length;
    if (open === 0) this.#confirm(entry);
    for (const listener of this.#listeners) listener(this.#lastSeq);
    return entry.confirmed.promise;
  }

  /** A sink has confirmed one delivery of the event. */
  delivered(sink: string, { seq }: JournalEvent): void {
    const entry = this.#entries[seq - this.#firstSeq];
    if (entry === undefined || !this.#options.isRequired(sink)) return;
    entry.open -= 1;
    if (entry.open === 0) this.#confirm(entry);
  }

  addDeadLetter({ sink, reason, event }: Omit<DeadLetter, 'key'>): Promise<void> {
    const entry = this.#entries[event.seq - this.#firstSeq];
    if (entry !== undefined && this.#options.isRequired(sink)) {
      this.#byId.delete(event.id);
      entry.open = 0;
      entry.confirmed.reject(new MillraceError('sink_refused', `${sink}: ${reason}`));
    }
    return Promise.resolve();
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const found: JournalEvent[] = [];
    let size = 0;
    for (let at = Math.max(0, after + 1 - this.#firstSeq); at < this.#entries.length; at += 1) {
      const event = this.#entries[at]?.event;
      if (event === undefined || found.length >= limits.count) break;
      if (found.length > 0 && size + event.body.length > limits.bytes) break;
      size += event.body.length;
      found.push(event);
    }
    return Promise.resolve(found);
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  openCursor(sink: string): Promise<number> {
    this.#cursors.set(sink, this.#lastSeq);
    return Promise.resolve(this.#lastSeq);
  }

  releaseCursor(sink: string): void {
    this.#cursors.delete(sink);
    this.#trim();
  }

  moveCursor(sink: string, seq: number): void {
    this.#cursors.set(sink, seq);
    this.#trim();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  /** How far each sink is. */
  cursors(): ReadonlyMap<string, number> {
    return this.#cursors;
  }

  #confirm(entry: Entry): void {
    const { id, seq } = entry.event;
    this.#byId.delete(id);
    this.#answered.add(id);
    // A Set keeps the order of insertion: the first is the oldest.
    for (const oldest of this.#answered) {
      if (this.#answered.size <= REMEMBERED) break;
      this.#answered.delete(oldest);
    }
    entry.confirmed.resolve({ status: 'accepted', seq });
    this.#trim();
  }

  /** Forgets what every sink is past; above the bound also what only best-effort sinks have not had. */
  #trim(): void {
    const slowest = Math.min(this.#lastSeq, ...this.#cursors.values());
    let count = 0;
    for (const { event, open } of this.#entries) {
      if (open > 0 || (event.seq > slowest && this.#bytes < this.#options.maxBytes)) break;
      this.#bytes -= event.body.length;
      count += 1;
    }
    if (count === 0) return;
    this.#entries = this.#entries.slice(count);
    this.#firstSeq += count;
    for (const [sink, seq] of this.#cursors) {
      if (seq >= this.#firstSeq - 1) continue;
      this.#options.onSkipped(sink, this.#firstSeq - 1 - seq);
      this.#cursors.set(sink, this.#firstSeq - 1);
    }
  }
}
