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
const REMEMBERED = 3_600_000;
const MOST_TROUBLES = 10;
/** Each is a label of a metric. */
const MOST_SKIPPED = 101;
const SKIPPED = z.tuple([z.string().max(120), z.number().nonnegative()]);

/**
 * A sink made by a user's own module, as the rest of the program sees it. Whatever the module does harms this sink only: it is
 * handed copies, and an error that it throws later, or leaves in a promise, pauses this sink instead of ending the process.
 * `close`, `settle`, `flush` and `erasable` pass through.
 */
export class OwnSink implements Sink, Guest {
  limits!: SinkLimits;
  settle?: NonNullable<Sink['settle']>;
  erasable?: NonNullable<Sink['erasable']>;
  flush?: NonNullable<Sink['flush']>;
  keep?: NonNullable<Sink['keep']>;
  readonly name: string;
  readonly #context: SinkContext;
  readonly #onClosed: (sink: OwnSink) => void;
  /** Copies by what they are of: a batch that is sent again is the same memory, however often it is never answered. */
  readonly #copies = new WeakMap<JournalEvent, JournalEvent>();
  #sink!: Sink;
  #strays = { count: 0, first: 0, last: 0, message: '' };
  /** A stray error came, and no `send` has failed for it yet. */
  #owes = false;
  #wrote = false;

  /** @param file of the module, absolute */
  constructor(file: string, context: SinkContext, onClosed: (sink: OwnSink) => void) {
    this.name = file;
    this.#context = context;
    this.#onClosed = onClosed;
  }

  /** @param limits those of the sink, checked */
  take(sink: Sink, limits: SinkLimits): void {
    this.#sink = sink;
    this.limits = limits;
    const { settle, erasable, flush, keep } = sink;
    if (settle !== undefined) this.settle = (holds) => onBehalfOf(this, () => settle.call(sink, holds));
    if (flush !== undefined)
      this.flush = async () => flushed.parse(await onBehalfOf(this, async () => flush.call(sink)));
    if (keep !== undefined) this.keep = (event, signal) => this.#keep(event, signal, keep.bind(sink));
    if (erasable !== undefined) this.erasable = () => onBehalfOf(this, () => erasable.call(sink));
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#call(signal, (own) => this.#sink.open(own));
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    if (this.#owes) return this.#failed(batch);
    const given = this.#given(batch);
    const results = await this.#call(signal, (own) => this.#sink.send(given, own));
    this.#compare(batch);
    // Which events the stray error was about nobody can tell, so none of them counts.
    return this.#owes ? this.#failed(batch) : results;
  }

  async close(signal: AbortSignal): Promise<void> {
    try {
      await this.#call(signal, (own) => this.#sink.close(own));
    } finally {
      this.#onClosed(this);
    }
  }

  blame(error: unknown): boolean {
    const now = this.#context.clock.now();
    const message = messageOf(error);
    const { count, first } = this.#strays;
    this.#strays = { count: count + 1, first: count === 0 ? now : first, last: now, message };
    this.#owes = true;
    const fields = { sink: this.#context.name, module: this.name, err: error };
    this.#context.log.error(fields, 'a sink module threw outside of any call; the sink is paused');
    return true;
  }

  troubles(): readonly SinkTrouble[] {
    const { count, first, last, message } = this.#strays;
    const own = this.#ownTroubles();
    if (count === 0 || this.#context.clock.now() - last > REMEMBERED) return own;
    const times = count === 1 ? 'once' : `${count} times, the last time`;
    const detail = `${this.name} threw outside of any call, ${times}: ${message}`;
    return [{ code: 'stray_error', detail, since: first }, ...own];
  }

  /** What the module says, as far as a metric can hold it; nothing when it cannot say. */
  skipped(): readonly (readonly [string, number])[] {
    try {
      const told: unknown = onBehalfOf(this, () => [...(this.#sink.skipped?.() ?? [])]);
      return z.array(SKIPPED).max(MOST_SKIPPED).safeParse(told).data ?? [];
    } catch {
      return [];
    }
  }

  /** @throws Error where it is not sure that the event is kept: the pointer is not sent then, and it is tried again */
  async #keep(
    event: JournalEvent,
    signal: AbortSignal,
    keep: NonNullable<Sink['keep']>,
  ): Promise<ClaimCheck> {
    const batch = [{ event, destination: null }];
    const [given = { event }] = this.#given(batch);
    const kept: unknown = await this.#call(signal, (own) => keep(given.event, own));
    this.#compare(batch);
    const [failed] = this.#owes ? this.#failed(batch) : [];
    if (failed?.status === 'retry') throw new Error(failed.reason);
    const { data, success } = claimCheck.safeParse(kept);
    if (!success)
      throw new Error(`${this.name}: keep must resolve to where the event is, as ClaimCheck says`);
    return data;
  }

  /** With a signal of its own: what it does when that aborts is its doing as well. */
  async #call<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = new AbortController();
    const forget = onAbort(signal, () => onBehalfOf(this, () => own.abort(signal.reason)));
    try {
      // In an async function: whatever comes back, a promise or not, settles once.
      return await onBehalfOf(this, async () => work(own.signal));
    } finally {
      forget();
    }
  }

  #ownTroubles(): readonly SinkTrouble[] {
    try {
      const told: unknown = onBehalfOf(this, () => this.#sink.troubles?.());
      return Array.isArray(told)
        ? told.filter((each): each is SinkTrouble => trouble.safeParse(each).success).slice(0, MOST_TROUBLES)
        : [];
    } catch (error) {
      return [{ code: 'troubles_failed', detail: messageOf(error), since: this.#context.clock.now() }];
    }
  }

  #failed(batch: readonly Delivery[]): SendResult[] {
    this.#owes = false;
    const reason = `${this.name} threw outside of any call: ${this.#strays.message}`;
    return batch.map(() => ({ status: 'retry', reason, sink: true }));
  }

  /** Copies: the others get the same events, and so does this sink when it has to try again. */
  #given(batch: readonly Delivery[]): Delivery[] {
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

  #compare(batch: readonly Delivery[]): void {
    if (this.#wrote) return;
    const wrote = batch.some(({ event }) => this.#copies.get(event)?.body.equals(event.body) === false);
    if (!wrote) return;
    this.#wrote = true;
    const fields = { sink: this.#context.name, module: this.name };
    this.#context.log.warn(
      fields,
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
