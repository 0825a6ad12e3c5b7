import { hash } from 'node:crypto';
import { MillraceError } from '../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../core/event.ts';
import { ID_REUSED, type AppendResult, type IngestOptions, type InvalidReason } from '../core/ingest.ts';
import type { ConfirmedLog, EventStore } from '../core/journal.ts';
import type { Route, Target } from '../core/route.ts';
import { NO_ROUTES, type RouteRecord } from '../core/route-record.ts';
import { MemoryLog, type Refusal } from './memory-log.ts';

interface DeliveredLogOptions {
  /** Whether a sink must confirm an event before it is answered; others may miss events (best effort). */
  readonly isRequired: (sink: string) => boolean;
  readonly targetsOf: (event: Pick<JournalEvent, 'type' | 'handling'>) => readonly Target[];
  /** Target of invalid events; null when they are refused, and stay with the sender. */
  readonly quarantineTo: () => string | null;
  /** Body bytes that may wait; above that, new events are refused. */
  readonly maxBytes: number;
  /** Called with the number of events that a best-effort sink will not get. */
  readonly onSkipped: (sink: string, events: number) => void;
}

/** An event that is not answered yet. */
interface Entry {
  readonly seq: number;
  /** Source and id. */
  readonly key: string;
  /** Hash of the body. */
  readonly digest: string;
  /** How many deliveries each required sink has still to confirm. */
  readonly open: Map<string, number>;
  readonly confirmed: PromiseWithResolvers<AppendResult>;
}

/** At least so many answered keys are remembered: an event that is repeated soon is not forwarded again. */
const REMEMBERED = 50_000;
const DUPLICATE: AppendResult = { status: 'duplicate' };
const REUSED: AppendResult = { status: 'reused', seq: 0 };

/**
 * The journal of `acknowledge: delivered`, in memory: an event is answered when every required sink has confirmed it. What was
 * not confirmed was not acknowledged, so the sender still has it. A repetition of an event that is not answered yet waits for
 * the same confirmations. When a reload removes a sink, or the route to it, an event that it has not confirmed is refused; the
 * sender's next attempt goes by the new config.
 *
 * `accept` and `quarantine` reject with MillraceError backlog_full; sink_refused, when a required sink will never accept the
 * event; not_confirmed, when one that has not confirmed it is removed; `unfit`, when no target for invalid events is configured.
 */
export class DeliveredLog extends MemoryLog implements EventStore, ConfirmedLog {
  readonly #options: DeliveredLogOptions;
  readonly #byKey = new Map<string, Entry>();
  readonly #bySeq = new Map<number, Entry>();
  /** Digests by key, in two generations: deleting the oldest key of a large map would take longer than the rest of an event. */
  #answered = new Map<string, string>();
  #before: ReadonlyMap<string, string> = new Map();
  #record = NO_ROUTES;

  constructor(options: DeliveredLogOptions) {
    super(options);
    this.#options = options;
  }

  /** Sources need none: in this mode their brokers keep how far they are. */
  readonly checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };

  logOf(): this {
    return this;
  }

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
    this.#refuse(event.seq, sink, new MillraceError('sink_refused', `${sink}: ${reason}`));
    return Promise.resolve();
  }

  /** Events in memory keep the routes they were accepted under. */
  acceptUnder(routes: readonly Route[]): Promise<RouteRecord> {
    const eras = this.#record.eras.filter(({ after }) => after < this.lastSeq).slice(-1);
    this.#record = { ...NO_ROUTES, eras: [...eras, { after: this.lastSeq, tables: [routes] }] };
    return Promise.resolve(this.#record);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** An event that the sink has neither confirmed nor refused it will never get: the routes have changed. */
  protected override passed(sink: string, from: number, to: number): void {
    for (let seq = from; seq <= to; seq += 1) this.#refuse(seq, sink, goneWithout(sink));
  }

  /** For a required sink `passed` refuses the events. */
  protected override left(sink: string, events: readonly JournalEvent[]): void {
    const { isRequired, targetsOf } = this.#options;
    if (isRequired(sink)) return;
    const own = events.filter((event) => targetsOf(event).some((target) => target.sink === sink));
    if (own.length > 0) this.skipped(sink, own.length);
  }

  /** True for events that only best-effort sinks have not settled. */
  protected override maySkip(seq: number): boolean {
    return !this.#bySeq.has(seq);
  }

  protected override skipped(sink: string, events: number): void {
    this.#options.onSkipped(sink, events);
  }

  /** Nothing is kept here: an invalid event goes to the sink configured for it, or stays with the sender. */
  #keep(event: Event, reasons: readonly InvalidReason[], key: string): Promise<AppendResult> | null {
    const to = this.#options.quarantineTo();
    if (to !== null) return this.#add(event, { only: [to] }, key);
    return Promise.reject(new MillraceError('unfit', reasons.map(({ detail }) => detail).join('; ')));
  }

  /** Under a key of its own: that of the id is in use for other bytes. */
  async #keepReused(event: Event, reasons: readonly InvalidReason[], key: string): Promise<AppendResult> {
    const result = await this.#keep(event, reasons, JSON.stringify([key, hash('sha256', event.body, 'hex')]));
    return result?.status === 'accepted' ? REUSED : (result ?? DUPLICATE);
  }

  /** Null when the id came before with other bytes; the event is not added then. */
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
    // Before `append`, which may forget events that no required sink waits for.
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

  /** Refuses an event that the sink has not confirmed. */
  #refuse(seq: number, sink: string, error: MillraceError): void {
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
