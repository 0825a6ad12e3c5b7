import { z } from 'zod';
import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type {
  ClaimCheck,
  Delivery,
  SendResult,
  Sink,
  SinkContext,
  SinkLimits,
  SinkTrouble,
} from '../core/sink.ts';
import { onAbort } from '../lib/abort.ts';
import { onBehalfOf, type Guest } from '../lib/attribution.ts';

/** Milliseconds for which a stray error is shown after the last one. */
const SHOWN_MS = 3_600_000;
const MOST_TROUBLES = 10;
/** Each is a label of a metric. */
const MOST_SKIPPED = 101;
const SKIPPED = z.tuple([z.string().max(120), z.number().nonnegative()]);

/** Errors that one sink of a user's module threw outside of any call, or left in a promise. */
export class StrayErrors implements Guest {
  readonly name: string;
  /** Of the sink. */
  readonly context: SinkContext;
  #count = 0;
  #first = 0;
  #last = 0;
  #message = '';
  /** An error came, and no call has failed because of it yet. */
  #isDue = false;

  /** @param file of the module, absolute */
  constructor(file: string, context: SinkContext) {
    this.name = file;
    this.context = context;
  }

  blame(error: unknown): boolean {
    const { clock, log, name } = this.context;
    this.#last = clock.now();
    if (this.#count === 0) this.#first = this.#last;
    this.#count += 1;
    this.#message = messageOf(error);
    this.#isDue = true;
    const fields = { sink: name, module: this.name, err: error };
    log.error(fields, 'a sink module threw outside of any call; the sink is paused');
    return true;
  }

  /** Why the next call must fail; null when it need not. */
  take(): string | null {
    if (!this.#isDue) return null;
    this.#isDue = false;
    return `${this.name} threw outside of any call: ${this.#message}`;
  }

  troubles(): SinkTrouble[] {
    if (this.#count === 0 || this.context.clock.now() - this.#last > SHOWN_MS) return [];
    const times = this.#count === 1 ? 'once' : `${this.#count} times, the last time`;
    const detail = `${this.name} threw outside of any call, ${times}: ${this.#message}`;
    return [{ code: 'stray_error', detail, since: this.#first }];
  }
}

/**
 * A sink of a user's own module, for the rest of the program. The module can harm this sink only: it gets copies of events, and a
 * stray error pauses this sink instead of ending the process. `close`, `settle`, `flush` and `erasable` pass through.
 */
export class OwnSink implements Sink {
  readonly limits: SinkLimits;
  readonly settle?: NonNullable<Sink['settle']>;
  readonly erasable?: NonNullable<Sink['erasable']>;
  readonly flush?: NonNullable<Sink['flush']>;
  readonly keep?: NonNullable<Sink['keep']>;
  readonly #sink: Sink;
  readonly #strays: StrayErrors;
  readonly #onClosed: () => void;
  /** Copy of each event: a batch that is sent again uses the same memory. */
  readonly #copies = new WeakMap<JournalEvent, JournalEvent>();
  #hasWarned = false;

  /** @param limits those of the sink, checked @param strays of the sink */
  constructor(sink: Sink, limits: SinkLimits, strays: StrayErrors, onClosed: () => void) {
    this.limits = limits;
    this.#sink = sink;
    this.#strays = strays;
    this.#onClosed = onClosed;
    const { settle, erasable, flush, keep } = sink;
    if (settle !== undefined) this.settle = (holds) => onBehalfOf(strays, () => settle.call(sink, holds));
    if (flush !== undefined)
      this.flush = async () => flushed.parse(await onBehalfOf(strays, async () => flush.call(sink)));
    if (keep !== undefined) this.keep = (event, signal) => this.#keep(event, signal, keep.bind(sink));
    if (erasable !== undefined) this.erasable = () => onBehalfOf(strays, () => erasable.call(sink));
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#call(signal, (own) => this.#sink.open(own));
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const failed = (reason: string): SendResult[] =>
      batch.map(() => ({ status: 'retry', reason, sink: true }));
    const before = this.#strays.take();
    if (before !== null) return failed(before);
    const copies = this.#copiesOf(batch);
    const results = await this.#call(signal, (own) => this.#sink.send(copies, own));
    this.#warnOfChanges(batch);
    // Which events the stray error concerns is unknown, so no result counts.
    const during = this.#strays.take();
    return during === null ? results : failed(during);
  }

  async close(signal: AbortSignal): Promise<void> {
    try {
      await this.#call(signal, (own) => this.#sink.close(own));
    } finally {
      this.#onClosed();
    }
  }

  troubles(): readonly SinkTrouble[] {
    return [...this.#strays.troubles(), ...this.#ownTroubles()];
  }

  /** Names and counts of the module, if they are valid for a metric; else nothing. */
  skipped(): readonly (readonly [string, number])[] {
    try {
      const said: unknown = onBehalfOf(this.#strays, () => [...(this.#sink.skipped?.() ?? [])]);
      return z.array(SKIPPED).max(MOST_SKIPPED).safeParse(said).data ?? [];
    } catch {
      return [];
    }
  }

  /** @throws Error when it is not sure that the event is kept: then its pointer is not sent, and the call is made again */
  async #keep(
    event: JournalEvent,
    signal: AbortSignal,
    keep: NonNullable<Sink['keep']>,
  ): Promise<ClaimCheck> {
    const batch = [{ event, destination: null }];
    const [copy = { event }] = this.#copiesOf(batch);
    const kept: unknown = await this.#call(signal, (own) => keep(copy.event, own));
    this.#warnOfChanges(batch);
    const stray = this.#strays.take();
    if (stray !== null) throw new Error(stray);
    const { data, success } = claimCheck.safeParse(kept);
    if (success) return data;
    throw new Error(`${this.#strays.name}: keep must resolve to where the event is, as ClaimCheck says`);
  }

  /** With its own signal: what the module does when that aborts is its doing as well. */
  async #call<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = new AbortController();
    const forget = onAbort(signal, () => onBehalfOf(this.#strays, () => own.abort(signal.reason)));
    try {
      // An async function, so that any value settles once, a promise or not.
      return await onBehalfOf(this.#strays, async () => work(own.signal));
    } finally {
      forget();
    }
  }

  #ownTroubles(): readonly SinkTrouble[] {
    try {
      const said: unknown = onBehalfOf(this.#strays, () => this.#sink.troubles?.());
      return Array.isArray(said)
        ? said.filter((each): each is SinkTrouble => trouble.safeParse(each).success).slice(0, MOST_TROUBLES)
        : [];
    } catch (error) {
      return [{ code: 'troubles_failed', detail: messageOf(error), since: this.#strays.context.clock.now() }];
    }
  }

  /** Copies: other sinks get the same events, and this sink gets them again at a retry. */
  #copiesOf(batch: readonly Delivery[]): Delivery[] {
    const fresh = batch.filter(({ event }) => this.#copies.get(event)?.body.equals(event.body) !== true);
    const memory = Buffer.allocUnsafeSlow(fresh.reduce((sum, { event }) => sum + event.body.length, 0));
    let at = 0;
    for (const { event } of fresh) {
      const body = memory.subarray(at, at + event.body.length);
      event.body.copy(body);
      at += event.body.length;
      const { headers, handling } = event;
      const own = { headers: { ...headers }, handling: structuredClone(handling), body };
      this.#copies.set(event, { ...event, ...own });
    }
    return batch.map(({ event, destination }) => ({
      event: { ...(this.#copies.get(event) ?? event) },
      destination,
    }));
  }

  #warnOfChanges(batch: readonly Delivery[]): void {
    if (this.#hasWarned) return;
    if (batch.every(({ event }) => this.#copies.get(event)?.body.equals(event.body) !== false)) return;
    this.#hasWarned = true;
    const { context, name } = this.#strays;
    context.log.warn(
      { sink: context.name, module: name },
      'a sink module changes the bodies it is given; other sinks get the original',
    );
  }
}

const claimCheck = z.strictObject({
  path: z.string().min(1),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().min(0),
});

const flushed = z.object({
  files: z.array(z.object({ file: z.string(), records: z.number().min(0) })),
  failed: z.array(z.string()),
});

const trouble = z.object({
  // It becomes a label of metrics.
  code: z.string().regex(/^[a-z_]{1,40}$/),
  detail: z.string(),
  since: z.number(),
  lost: z.number().min(0).optional(),
});
