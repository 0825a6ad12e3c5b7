import { hash } from 'node:crypto';
import { MillraceError } from '../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../core/event.ts';
import { ID_REUSED, type AppendResult, type IngestOptions, type InvalidReason } from '../core/ingest.ts';
import type { EventStore } from '../core/journal.ts';
import type { Route, Target } from '../core/route.ts';
import { NO_ROUTES, type RouteRecord } from '../core/route-record.ts';
import { MemoryLog, type Refusal } from './memory-log.ts';

export interface DeliveredLogOptions {
  /** Whether a sink must confirm before an event is answered; the others get it as well as they can take it. */
  readonly isRequired: (sink: string) => boolean;
  readonly targetsOf: (event: Pick<JournalEvent, 'type' | 'handling'>) => readonly Target[];
  /** The sink, or place in it, for what is not fit to route; null when the sender keeps that. */
  readonly quarantineTo: () => string | null;
  /** Body bytes that may wait; above it new events are rejected. */
  readonly maxBytes: number;
  /** Told how many events a best-effort sink will not get, because memory could not wait for it. */
  readonly onSkipped: (sink: string, events: number) => void;
}

/** An event that is not answered yet. */
interface Entry {
  readonly seq: number;
  /** Its source, and its id there. */
  readonly key: string;
  /** Of its bytes. */
  readonly digest: string;
  /** Deliveries that required sinks have still to confirm, for each of these sinks. */
  readonly open: Map<string, number>;
  readonly confirmed: PromiseWithResolvers<AppendResult>;
}

/** Keys answered in this process that are remembered at least, so that an early repetition is not forwarded again. */
const REMEMBERED = 50_000;
const DUPLICATE: AppendResult = { status: 'duplicate' };
const REUSED: AppendResult = { status: 'reused', seq: 0 };

/**
 * Memory in the journal's place, for `acknowledge: delivered`: an event is answered when every required sink has
 * confirmed it, and forgotten then. Nothing here survives the process, and nothing needs to: what was not confirmed was
 * not acknowledged, so the sender has it. A repetition that comes while the first attempt is still on its way waits
 * for the same confirmation. When a reload takes away a sink, or the route to it, what it has not confirmed is given
 * back to the sender, whose next attempt goes by the new config.
 *
 * `accept` and `quarantine` reject with backlog_full; with sink_refused when a required sink will never take the event;
 * with not_confirmed when one that has not taken it is gone; with unfit when there is no place for what is invalid.
 */
export class DeliveredLog extends MemoryLog implements EventStore {
  readonly #options: DeliveredLogOptions;
  readonly #byKey = new Map<string, Entry>();
  readonly #bySeq = new Map<number, Entry>();
  /** Digest by key, and the generation before: to give up the oldest of a large map takes longer than all else of an event. */
  #answered = new Map<string, string>();
  #before: ReadonlyMap<string, string> = new Map();
  #record = NO_ROUTES;

  constructor(options: DeliveredLogOptions) {
    super(options);
    this.#options = options;
  }

  /** The brokers that are read in this mode keep their own place. */
  readonly checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };

  async accept(
    event: Event,
    { handling = {}, dedupKey = event.id }: IngestOptions = {},
  ): Promise<AppendResult> {
    return this.#add(event, handling, dedupKey) ?? this.#keepReused(event, [ID_REUSED], dedupKey);
  }

  async quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    { dedupKey = event.id }: IngestOptions = {},
  ): Promise<AppendResult> {
    return this.#keep(event, reasons, dedupKey) ?? this.#keepReused(event, [ID_REUSED, ...reasons], dedupKey);
  }

  countErased(): Promise<AppendResult> {
    return Promise.resolve({ status: 'erased' });
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  delivered(sink: string, { seq }: Pick<JournalEvent, 'seq'>): void {
    const entry = this.#bySeq.get(seq);
    const left = entry?.open.get(sink);
    if (entry === undefined || left === undefined) return;
    if (left > 1) entry.open.set(sink, left - 1);
    else entry.open.delete(sink);
    if (entry.open.size === 0) this.#confirm(entry);
  }

  override addDeadLetter({ sink, reason, event }: Refusal): Promise<void> {
    this.#giveBack(event.seq, sink, new MillraceError('sink_refused', `${sink}: ${reason}`));
    return Promise.resolve();
  }

  /** Those in memory go where they were to go when they came. */
  acceptUnder(routes: readonly Route[]): Promise<RouteRecord> {
    const eras = this.#record.eras.filter(({ after }) => after < this.lastSeq).slice(-1);
    this.#record = { ...NO_ROUTES, eras: [...eras, { after: this.lastSeq, tables: [routes] }] };
    return Promise.resolve(this.#record);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** What the sink has neither confirmed nor refused it will never get: the routes have changed. */
  protected override passed(sink: string, from: number, to: number): void {
    for (let seq = from; seq <= to; seq += 1) this.#giveBack(seq, sink, goneWithout(sink));
  }

  /** Of what is for a required sink the sender is told. */
  protected override left(sink: string, events: readonly JournalEvent[]): void {
    const { isRequired, targetsOf } = this.#options;
    if (isRequired(sink)) return;
    const own = events.filter((event) => targetsOf(event).some((target) => target.sink === sink));
    if (own.length > 0) this.skipped(sink, own.length);
  }

  /** What only best-effort sinks have not had. */
  protected override maySkip(seq: number): boolean {
    return !this.#bySeq.has(seq);
  }

  protected override skipped(sink: string, events: number): void {
    this.#options.onSkipped(sink, events);
  }

  /** There is no place of our own to keep it in: it goes to the sink named for it, or stays with the sender. */
  #keep(event: Event, reasons: readonly InvalidReason[], key: string): Promise<AppendResult> | null {
    const to = this.#options.quarantineTo();
    if (to !== null) return this.#add(event, { only: [to] }, key);
    return Promise.reject(new MillraceError('unfit', reasons.map(({ detail }) => detail).join('; ')));
  }

  /** A key of its own lets it through. */
  async #keepReused(event: Event, reasons: readonly InvalidReason[], key: string): Promise<AppendResult> {
    const result = await this.#keep(event, reasons, JSON.stringify([key, hash('sha256', event.body, 'hex')]));
    return result?.status === 'accepted' ? REUSED : (result ?? DUPLICATE);
  }

  /** Null, and nothing is kept, when the id came before with other bytes. */
  #add(event: Event, handling: Handling, id: string): Promise<AppendResult> | null {
    const { source, body, type } = event;
    const key = `${source.length}:${source}${id}`;
    const digest = hash('sha256', body, 'base64');
    const known = this.#byKey.get(key);
    const answered = this.#answered.get(key) ?? this.#before.get(key);
    if ((known?.digest ?? answered ?? digest) !== digest) return null;
    if (answered !== undefined) return Promise.resolve(DUPLICATE);
    if (known !== undefined) return known.confirmed.promise.then(() => DUPLICATE);
    this.forget();
    if (!this.hasRoom) {
      const detail = `${this.waiting.bytes} bytes wait for required sinks`;
      return Promise.reject(new MillraceError('backlog_full', detail));
    }
    const open = new Map<string, number>();
    for (const { sink } of this.#options.targetsOf({ type, handling })) {
      if (!this.#options.isRequired(sink)) continue;
      if (!this.hasCursor(sink)) return Promise.reject(goneWithout(sink));
      open.set(sink, (open.get(sink) ?? 0) + 1);
    }
    const confirmed = Promise.withResolvers<AppendResult>();
    confirmed.promise.catch(() => undefined);
    // Before the feeds are told of it: what nobody waits for they may skip.
    const entry: Entry = { seq: this.lastSeq + 1, key, digest, open, confirmed };
    this.#byKey.set(key, entry);
    this.#bySeq.set(entry.seq, entry);
    this.append(event, handling);
    if (open.size === 0) this.#confirm(entry);
    return confirmed.promise;
  }

  #confirm(entry: Entry): void {
    const { seq, key, digest } = entry;
    this.#close(entry);
    this.#answered.set(key, digest);
    if (this.#answered.size >= REMEMBERED) {
      this.#before = this.#answered;
      this.#answered = new Map();
    }
    entry.confirmed.resolve({ status: 'accepted', seq });
    this.forget();
  }

  /** When the sink has not confirmed it. */
  #giveBack(seq: number, sink: string, error: MillraceError): void {
    const entry = this.#bySeq.get(seq);
    if (entry?.open.has(sink) !== true) return;
    this.#close(entry);
    entry.confirmed.reject(error);
  }

  #close({ seq, key }: Entry): void {
    this.#bySeq.delete(seq);
    this.#byKey.delete(key);
  }
}

function goneWithout(sink: string): MillraceError {
  return new MillraceError('not_confirmed', `${sink} was removed, or the routes no longer lead to it`);
}
