import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import {
  DELIVERED,
  type ClaimCheck,
  type Delivery,
  type SendResult,
  type SinkLimits,
  type SinkTrouble,
} from '../core/sink.ts';
import { onAbort } from '../lib/abort.ts';
import { formatDuration } from '../lib/units.ts';
import type { FeedOptions } from './feed-options.ts';

/** Milliseconds a call has after its time, to say what it knows. */
const GRACE = 1000;

type Options = Pick<FeedOptions, 'name' | 'sink' | 'keep' | 'clock' | 'sendTimeout' | 'log'>;

/** Calls a sink, whoever wrote it: each call has its time, each answer is read with care, and what is unanswered is known. */
export class SinkCalls {
  readonly limits: SinkLimits;
  readonly #options: Options;
  readonly #timeout: number | null;
  /** Calls that have not settled, also those that nobody waits for any more. */
  readonly #open = new Map<Promise<unknown>, string>();
  /** Of these, what was called, and when it was given up. */
  readonly #overdue = new Map<Promise<unknown>, { readonly what: string; readonly since: number }>();

  constructor(options: Options) {
    const { sink, sendTimeout } = options;
    this.#options = options;
    this.limits = sink.limits;
    this.#timeout = sendTimeout === undefined ? null : Math.max(sendTimeout, sink.limits.sendTimeout ?? 0);
  }

  /** Whether there is a place for events that are too large. */
  get keeps(): boolean {
    return this.#options.keep !== undefined;
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#call('open', signal, (own) => this.#options.sink.open(own));
  }

  /** @throws whatever the sink throws, and for an answer that cannot be read */
  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const answer: unknown = await this.#call('send', signal, (own) => this.#options.sink.send(batch, own));
    return readAnswer(answer, batch.length);
  }

  keep(event: JournalEvent, signal: AbortSignal): Promise<ClaimCheck> {
    const { keep } = this.#options;
    if (keep === undefined) return Promise.reject(new Error('nothing keeps large events'));
    return this.#call('keep', signal, (own) => keep(event, own));
  }

  /** Lets the sink bring all that it holds to its place. Never rejects. */
  async flush(): Promise<void> {
    try {
      await this.#options.sink.settle?.(() => Promise.resolve(true));
    } catch (error) {
      const fields = { sink: this.#options.name, error: messageOf(error) };
      this.#options.log.warn(fields, 'sink could not confirm what it holds');
    }
  }

  /** Never rejects: others are still to be stopped, and what it has not confirmed is in the journal. */
  async close(signal: AbortSignal): Promise<void> {
    try {
      const closing = this.#options.sink.close(signal);
      this.#track(closing, 'close');
      await closing;
    } catch (error) {
      this.#options.log.error({ sink: this.#options.name, error: messageOf(error) }, 'sink did not close');
    }
  }

  /** Settles once the sink has answered all that is in flight now, however late; with `open` nothing is. */
  async answered(): Promise<void> {
    await Promise.allSettled([...this.#open].flatMap(([call, what]) => (what === 'open' ? [] : [call])));
  }

  /** What the sink does not answer, and what it says itself. */
  troubles(): readonly SinkTrouble[] {
    const [first] = this.#overdue.values();
    const own = this.#options.sink.troubles?.() ?? [];
    if (first === undefined) return own;
    const { what, since } = first;
    const times = this.#overdue.size === 1 ? 'one call' : `${this.#overdue.size} calls`;
    const detail = `${times} of ${what} did not answer within ${formatDuration(this.#timeout ?? 0)}; they are retried`;
    return [{ code: 'unanswered', detail, since }, ...own];
  }

  skipped(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#options.sink.skipped?.() ?? []);
  }

  async #call<T>(what: string, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const calls: Promise<T>[] = [];
    const tracked = (signal: AbortSignal): Promise<T> => {
      const call = work(signal);
      calls.push(call);
      this.#track(call, what);
      return call;
    };
    const ms = this.#timeout;
    if (ms === null) return await tracked(outer);
    try {
      const message = `${what} has not answered within ${formatDuration(ms)}`;
      return await withTimeLimit(tracked, outer, ms, this.#options.clock, message);
    } catch (error) {
      const since = this.#options.clock.now();
      if (error instanceof TimedOut)
        for (const call of calls) if (this.#open.has(call)) this.#overdue.set(call, { what, since });
      throw error;
    }
  }

  #track(call: Promise<unknown>, what: string): void {
    // What is no promise has answered already; what only looks like one might call back twice.
    const settled = Promise.resolve(call);
    this.#open.set(call, what);
    const forget = (): void => {
      this.#open.delete(call);
      this.#overdue.delete(call);
    };
    settled.then(forget, forget);
  }
}

/** Work did not answer in time, although its signal told it to. */
class TimedOut extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TimedOut';
  }
}

/**
 * The answer of work that might never answer. What it does after its time is its own affair: a late answer is ignored, and so
 * is a late rejection.
 * @param outer ends the work early
 * @param ms until its signal aborts
 * @throws TimedOut
 */
async function withTimeLimit<T>(
  work: (signal: AbortSignal) => Promise<T>,
  outer: AbortSignal,
  ms: number,
  clock: Clock,
  message: string,
): Promise<T> {
  const own = new AbortController();
  const forget = onAbort(outer, () => own.abort(outer.reason));
  const late = Promise.withResolvers<never>();
  let cancel = clock.after(ms, () => {
    own.abort(new TimedOut(message));
    cancel = clock.after(GRACE, () => late.reject(new TimedOut(message)));
  });
  try {
    return await Promise.race([work(own.signal), late.promise]);
  } finally {
    cancel();
    forget();
  }
}

/** Longest wait that a sink may ask for, milliseconds: after an hour it is worth a try, whatever was said. */
export const LONGEST_DELAY = 3_600_000;

/**
 * What a sink has answered, as plain results that nobody else holds. Sinks are written by strangers: an answer that cannot be
 * read counts as none, for the event it was for or, when the number is wrong, for all.
 * @throws Error that says what is wrong with the answer as a whole
 */
export function readAnswer(answer: unknown, count: number): SendResult[] {
  if (!Array.isArray(answer)) throw new Error(`the sink answered ${nameOf(answer)} instead of results`);
  if (answer.length !== count)
    throw new Error(`the sink answered ${answer.length} results for ${count} events`);
  const results: SendResult[] = [];
  for (let at = 0; at < count; at += 1) results.push(readResult(answer[at]));
  return results;
}

function readResult(result: unknown): SendResult {
  if (result === DELIVERED) return DELIVERED;
  if (typeof result !== 'object' || result === null) return unreadable(nameOf(result));
  const { status, until, reason, code, delayMs, sink, untried, batch } = result as Record<string, unknown>;
  if (status === 'delivered') return DELIVERED;
  if (status === 'held')
    return until instanceof Promise ? { status, until } : unreadable('held, without a promise');
  if (status === 'retry') {
    const wait = readDelay(delayMs);
    return {
      status,
      reason: typeof reason === 'string' ? reason : 'the sink gave no reason',
      ...(wait === null ? {} : { delayMs: wait }),
      ...(sink === true ? { sink } : {}),
      ...(untried === true ? { untried } : {}),
    };
  }
  if (status !== 'refused') return unreadable(`the status ${nameOf(status)}`);
  // A refusal is for good, so it has to say what it is for.
  if (typeof code !== 'string' || typeof reason !== 'string')
    return unreadable('a refusal without code and reason');
  return { status, code, reason, ...(batch === true ? { batch } : {}) };
}

/** Null for what is no time to wait: a timer would take it for none at all, and the retries would be a storm. */
function readDelay(delayMs: unknown): number | null {
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs) || delayMs < 0) return null;
  return Math.min(delayMs, LONGEST_DELAY);
}

function unreadable(what: string): SendResult {
  return { status: 'retry', reason: `the sink answered ${what}`, sink: true };
}

/** Never the value itself, unless it is one word: it could be anything, a body too. */
function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'string' && /^\w{1,20}$/.test(value) ? value : `a value of type ${typeof value}`;
}
