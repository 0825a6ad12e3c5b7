import { hash } from 'node:crypto';
import { MillraceError } from '../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { AppendResult, DeadLetter, EventLog, RouteKeeper } from '../core/journal.ts';
import { pageOf } from '../core/page.ts';
import type { Route, Target } from '../core/route.ts';
import { NO_ROUTES, type RouteRecord } from '../core/route-record.ts';

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
  /** Its source, and its id there. */
  readonly key: string;
  /** Of its bytes. */
  readonly digest: string;
  /** Deliveries that required sinks have still to confirm, for each of these sinks. */
  readonly open: Map<string, number>;
  readonly confirmed: PromiseWithResolvers<AppendResult>;
}

/** Keys answered in this process that are remembered, so that an early repetition is not forwarded again. */
const REMEMBERED = 100_000;

/**
 * Memory in the journal's place, for `acknowledge: delivered`: an event is answered when every required sink has
 * confirmed it, and forgotten then. Nothing here survives the process, and nothing needs to: what was not confirmed was
 * not acknowledged, so the sender has it. A repetition that comes while the first attempt is still on its way waits
 * for the same confirmation. When a reload takes away a sink, or the route to it, what it has not confirmed is given
 * back to the sender, whose next attempt goes by the new config.
 */
export class DirectLog implements EventLog, RouteKeeper {
  readonly #options: DirectLogOptions;
  readonly #listeners = new Set<(lastSeq: number) => void>();
  readonly #cursors = new Map<string, number>();
  readonly #byKey = new Map<string, Entry>();
  /** Digest by key. */
  readonly #answered = new Map<string, string>();
  /** Contiguous by seq; the first one is `#firstSeq`. */
  #entries: Entry[] = [];
  #firstSeq = 1;
  #lastSeq = 0;
  #record = NO_ROUTES;
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
   * @param id what stands for the event's id within its source
   * @returns `reused`, and keeps nothing, when the id came before with other bytes
   * @throws MillraceError backlog_full; sink_refused when a required sink will never take it; not_confirmed when one
   * that has not taken it is gone
   */
  append(event: Event, handling: Handling = {}, id: string = event.id): Promise<AppendResult> {
    const { source, body } = event;
    const key = `${source.length}:${source}${id}`;
    const digest = hash('sha256', body, 'base64');
    const known = this.#byKey.get(key);
    const before = known?.digest ?? this.#answered.get(key) ?? digest;
    if (before !== digest) return Promise.resolve({ status: 'reused' });
    if (this.#answered.has(key)) return Promise.resolve({ status: 'duplicate' });
    if (known !== undefined) return known.confirmed.promise.then(() => ({ status: 'duplicate' }));
    this.#trim();
    if (this.#bytes >= this.#options.maxBytes) {
      return Promise.reject(
        new MillraceError('backlog_full', `${this.#bytes} bytes wait for required sinks`),
      );
    }
    const stored: JournalEvent = { ...event, seq: this.#lastSeq + 1, handling };
    const open = new Map<string, number>();
    for (const { sink } of this.#options.targetsOf(stored)) {
      if (!this.#options.isRequired(sink)) continue;
      if (!this.#cursors.has(sink)) return Promise.reject(goneWithout(sink));
      open.set(sink, (open.get(sink) ?? 0) + 1);
    }
    this.#lastSeq = stored.seq;
    const entry: Entry = { event: stored, key, digest, open, confirmed: Promise.withResolvers() };
    entry.confirmed.promise.catch(() => undefined);
    this.#entries.push(entry);
    this.#byKey.set(key, entry);
    this.#bytes += event.body.length;
    if (open.size === 0) this.#confirm(entry);
    for (const listener of this.#listeners) listener(this.#lastSeq);
    return entry.confirmed.promise;
  }

  /** A sink has confirmed one delivery of the event. */
  delivered(sink: string, { seq }: JournalEvent): void {
    const entry = this.#entries[seq - this.#firstSeq];
    const left = entry?.open.get(sink);
    if (entry === undefined || left === undefined) return;
    if (left > 1) entry.open.set(sink, left - 1);
    else entry.open.delete(sink);
    if (entry.open.size === 0) this.#confirm(entry);
  }

  addDeadLetter({ sink, reason, event }: Omit<DeadLetter, 'key'>): Promise<void> {
    const entry = this.#entries[event.seq - this.#firstSeq];
    if (entry?.open.has(sink) === true)
      this.#giveBack(entry, new MillraceError('sink_refused', `${sink}: ${reason}`));
    return Promise.resolve();
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const from = Math.max(0, after + 1 - this.#firstSeq);
    return Promise.resolve(pageOf(this.#entries, from, limits, ({ event }) => event));
  }

  subscribe(listener: (lastSeq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Those in memory go where they were to go when they came. */
  acceptUnder(routes: readonly Route[]): Promise<RouteRecord> {
    const eras = this.#record.eras.filter(({ after }) => after < this.#lastSeq).slice(-1);
    this.#record = { ...NO_ROUTES, eras: [...eras, { after: this.#lastSeq, tables: [routes] }] };
    return Promise.resolve(this.#record);
  }

  openCursor(sink: string): Promise<number> {
    this.#cursors.set(sink, this.#lastSeq);
    return Promise.resolve(this.#lastSeq);
  }

  releaseCursor(sink: string): void {
    this.#cursors.delete(sink);
    this.#passed(sink, this.#firstSeq, this.#lastSeq);
    this.#trim();
  }

  moveCursor(sink: string, seq: number): void {
    const before = this.#cursors.get(sink);
    // From a sink that is gone, and may even be back: what was on its way is not what it stands for now.
    if (before === undefined || seq <= before) return;
    this.#cursors.set(sink, seq);
    this.#passed(sink, before + 1, seq);
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
    const { event, key, digest } = entry;
    this.#byKey.delete(key);
    this.#answered.set(key, digest);
    // A Map keeps the order of insertion: the first is the oldest.
    for (const oldest of this.#answered.keys()) {
      if (this.#answered.size <= REMEMBERED) break;
      this.#answered.delete(oldest);
    }
    entry.confirmed.resolve({ status: 'accepted', seq: event.seq });
    this.#trim();
  }

  /** What the sink is past, and has neither confirmed nor refused, it will never get: the routes have changed. */
  #passed(sink: string, from: number, to: number): void {
    for (let seq = Math.max(from, this.#firstSeq); seq <= to; seq += 1) {
      const entry = this.#entries[seq - this.#firstSeq];
      if (entry?.open.has(sink) === true) this.#giveBack(entry, goneWithout(sink));
    }
  }

  #giveBack(entry: Entry, error: MillraceError): void {
    this.#byKey.delete(entry.key);
    entry.open.clear();
    entry.confirmed.reject(error);
  }

  /** Forgets what every sink is past; above the bound also what only best-effort sinks have not had. */
  #trim(): void {
    const slowest = Math.min(this.#lastSeq, ...this.#cursors.values());
    let count = 0;
    for (const { event, open } of this.#entries) {
      if (open.size > 0 || (event.seq > slowest && this.#bytes < this.#options.maxBytes)) break;
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

function goneWithout(sink: string): MillraceError {
  return new MillraceError('not_confirmed', `${sink} is gone, or no longer where the routes lead`);
}
