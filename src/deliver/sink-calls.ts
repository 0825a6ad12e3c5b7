import { messageOf } from '../core/errors.ts';
import {
  DELIVERED,
  type Delivery,
  type SendResult,
  type Sink,
  type SinkLimits,
  type SinkTrouble,
} from '../core/sink.ts';
import { onAbort } from '../lib/abort.ts';
import { formatDuration } from '../lib/units.ts';
import type { FeedOptions } from './feed-options.ts';

/** How long a call may take to answer after its signal was aborted. */
const GRACE_MS = 1000;

type Options = Pick<FeedOptions, 'name' | 'sink' | 'keep' | 'clock' | 'sendTimeout' | 'log'>;

/** A call that has not settled. */
interface OpenCall {
  readonly method: string;
  /** Since when it counts as failed, milliseconds since the epoch; null while it is waited for. */
  overdueSince: number | null;
}

/** Calls a sink, also one written by a user: limits the time of each call, checks each answer, and knows what is unanswered. */
export class SinkCalls {
  readonly limits: SinkLimits;
  /** Keeps an event that is too large; null when nothing can. */
  readonly keep: NonNullable<Sink['keep']> | null;
  readonly #options: Options;
  readonly #timeout: number | null;
  readonly #open = new Map<Promise<unknown>, OpenCall>();

  constructor(options: Options) {
    const { sink, keep, sendTimeout } = options;
    this.#options = options;
    this.limits = sink.limits;
    this.keep =
      keep === undefined ? null : (event, signal) => this.#call('keep', signal, (own) => keep(event, own));
    this.#timeout = sendTimeout === undefined ? null : Math.max(sendTimeout, sink.limits.sendTimeout ?? 0);
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#call('open', signal, (own) => this.#options.sink.open(own));
  }

  /** @throws whatever the sink throws, and for an answer that cannot be read */
  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const answer: unknown = await this.#call('send', signal, (own) => this.#options.sink.send(batch, own));
    return readAnswer(answer, batch.length);
  }

  /** Makes the sink confirm all that it holds. Never rejects. */
  async flush(): Promise<void> {
    try {
      await this.#options.sink.settle?.(() => Promise.resolve(true));
    } catch (error) {
      const fields = { sink: this.#options.name, error: messageOf(error) };
      this.#options.log.warn(fields, 'sink could not confirm what it holds');
    }
  }

  /** Never rejects: what the sink has not confirmed is in the journal. */
  async close(signal: AbortSignal): Promise<void> {
    try {
      const closing = this.#options.sink.close(signal);
      this.#track('close', closing);
      await closing;
    } catch (error) {
      this.#options.log.error({ sink: this.#options.name, error: messageOf(error) }, 'sink did not close');
    }
  }

  /** Resolves when the sink has answered all that is in flight now, also what is overdue, except `open`. */
  async answered(): Promise<void> {
    await Promise.allSettled(
      [...this.#open].flatMap(([call, { method }]) => (method === 'open' ? [] : [call])),
    );
  }

  /** Calls that the sink has not answered in time, and its own troubles. */
  troubles(): readonly SinkTrouble[] {
    const own = this.#options.sink.troubles?.() ?? [];
    const overdue = [...this.#open.values()].filter(({ overdueSince }) => overdueSince !== null);
    const [first] = overdue;
    if (first === undefined) return own;
    const count = overdue.length === 1 ? 'one call' : `${overdue.length} calls`;
    const limit = formatDuration(this.#timeout ?? 0);
    const detail = `${count} of ${first.method} did not answer within ${limit}; they are retried`;
    return [{ code: 'unanswered', detail, since: first.overdueSince ?? 0 }, ...own];
  }

  /**
   * Calls the sink. When the call is overdue, it continues, and its answer is ignored.
   * @param outer aborts the call early
   * @throws Error when the call is overdue: a second after its signal was aborted
   */
  async #call<T>(method: string, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const ms = this.#timeout;
    if (ms === null) {
      const answer = work(outer);
      this.#track(method, answer);
      return await answer;
    }
    const own = new AbortController();
    const forget = onAbort(outer, () => own.abort(outer.reason));
    const late = Promise.withResolvers<never>();
    let call: OpenCall | null = null;
    let cancel = clock.after(ms, () => {
      const error = new Error(`${method} has not answered within ${formatDuration(ms)}`);
      own.abort(error);
      cancel = clock.after(GRACE_MS, () => {
        if (call !== null) call.overdueSince = clock.now();
        late.reject(error);
      });
    });
    try {
      const answer = work(own.signal);
      call = this.#track(method, answer);
      return await Promise.race([answer, late.promise]);
    } finally {
      cancel();
      forget();
    }
  }

  #track(method: string, answer: Promise<unknown>): OpenCall {
    const call: OpenCall = { method, overdueSince: null };
    this.#open.set(answer, call);
    const forget = (): void => void this.#open.delete(answer);
    // A sink may answer with something that is no promise, or only looks like one.
    Promise.resolve(answer).then(forget, forget);
    return call;
  }
}

/** Longest wait that a sink may ask for, milliseconds. */
export const LONGEST_DELAY = 3_600_000;

/**
 * Copies the answer of a sink into checked results. One that cannot be read makes the event of that result a retry.
 * @throws Error when the answer is not a list of `count` results
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
  // A refusal makes a dead letter, which has to say why.
  if (typeof code !== 'string' || typeof reason !== 'string')
    return unreadable('a refusal without code and reason');
  return { status, code, reason, ...(batch === true ? { batch } : {}) };
}

/** Null for a value that is no wait: a timer would take it for 0, and the retries would be a storm. */
function readDelay(delayMs: unknown): number | null {
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs) || delayMs < 0) return null;
  return Math.min(delayMs, LONGEST_DELAY);
}

function unreadable(what: string): SendResult {
  return { status: 'retry', reason: `the sink answered ${what}`, sink: true };
}

/** Never the value itself, unless it is one word: it could be a body. */
function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'string' && /^\w{1,20}$/.test(value) ? value : `a value of type ${typeof value}`;
}
