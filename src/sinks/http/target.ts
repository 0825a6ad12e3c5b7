import type { IncomingHttpHeaders } from 'node:http';
import { type Dispatcher, Pool } from 'undici';
import type { Clock } from '../../core/clock.ts';
import type { JournalEvent } from '../../core/event.ts';
import type { SendResult, SinkTrouble } from '../../core/sink.ts';
import { onAbort, unlessAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { Steady } from '../../lib/steady.ts';
import { ABORTED } from '../../vendors/failure.ts';
import { checkedLookup, type Resolve } from './addresses.ts';
import type { HttpOptions, TargetOptions } from './config.ts';
import { failureOf, resultOf, THROTTLING, type Answer } from './failure.ts';
import { headersFor } from './message.ts';
import { Turns } from './turns.ts';

/** Milliseconds that an event waits for its turn; then the dispatcher has it back, so that an erasure can remove it. */
export const PATIENCE = 5000;
/** Failures in a row after which the target is paused. */
const FAILURES = 5;
/** Milliseconds of the first pause, and of the longest; each pause is twice as long as the one before. */
const PAUSE = { first: 500, longest: 30_000 };
/** Milliseconds for which a trouble that comes and goes is shown after its end. */
const TROUBLE_SHOWN_MS = 30_000;
/** Bytes of an answer's body that are read; the rest does not matter. */
const ANSWER_BYTES = 64 * 1024;

export interface TargetContext {
  readonly clock: Clock;
  /** Called when a target is paused, and when it works again (null). */
  readonly onChange: (name: string, trouble: string | null) => void;
  readonly resolve?: Resolve;
}

/** A pause that a target has asked for. */
interface AskedPause {
  /** Monotonic milliseconds. */
  readonly until: number;
  readonly trouble: SinkTrouble;
}

/** By clock (one in a process) and URL: the pause stays in force when a reload makes another sink. */
const ASKED = new WeakMap<Clock, Map<string, AskedPause>>();

/**
 * One URL that events are posted to, with its own connections, pace and trouble.
 *
 * Modes: working → paused (after failures in a row, or when the target asks for it: nothing is sent until the pause is over) →
 * probing (one request at a time; a failure pauses again, for longer; a success ends it) → working.
 */
export class Target {
  readonly name: string;
  readonly #options: TargetOptions;
  readonly #all: HttpOptions;
  readonly #context: TargetContext;
  readonly #pool: Pool;
  readonly #turns: Turns;
  readonly #asked: Map<string, AskedPause>;
  #failures = 0;
  /** Pauses in a row; above 0 it is paused or probing. */
  #pauses = 0;
  #pausedUntil = 0;
  readonly #trouble: Steady<SinkTrouble>;

  constructor(target: TargetOptions, options: HttpOptions, context: TargetContext) {
    const { concurrency, timeout, allowed } = options;
    this.name = target.name ?? target.url.host;
    this.#options = target;
    this.#all = options;
    this.#context = context;
    const plain = target.url.protocol === 'http:';
    const lookup = checkedLookup({ allowed, plain }, context.resolve);
    this.#pool = new Pool(target.url.origin, {
      connections: concurrency,
      pipelining: 1,
      // `timeout` is for the whole request, and measured below.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { ...target.tls, lookup, timeout },
    });
    this.#turns = new Turns(options, PATIENCE, context.clock);
    this.#asked = getOrMake(ASKED, context.clock, () => new Map<string, AskedPause>());
    this.#trouble = new Steady(context.clock, TROUBLE_SHOWN_MS);
    const asked = this.#asked.get(target.url.href);
    if (asked === undefined || asked.until <= context.clock.monotonic()) return;
    [this.#pauses, this.#pausedUntil] = [1, asked.until];
    this.#trouble.begin(asked.trouble);
    this.#turns.narrow = true;
  }

  get trouble(): SinkTrouble | null {
    return this.#trouble.shown;
  }

  /** Paused or probing. */
  get isPaused(): boolean {
    return this.#pauses > 0;
  }

  /** Posts one event, once it is its turn. */
  async post(event: JournalEvent, signal: AbortSignal): Promise<SendResult> {
    const before = this.#pause();
    if (before !== null) return { ...before, untried: true };
    const turn = this.#turns.take();
    const isTurn = turn === true || (await unlessAborted(turn, signal, null));
    if (isTurn === null) {
      void Promise.resolve(turn).then((late) => late && this.#turns.done());
      return ABORTED;
    }
    if (!isTurn) {
      const reason = `${this.#place} has other events first`;
      return { ...(this.#pause() ?? { status: 'retry', reason, delayMs: 0 }), untried: true };
    }
    try {
      if (signal.aborted) return ABORTED;
      const pauses = this.#pauses;
      const { result, throttles } = await this.#request(event, signal);
      // A request sent before a pause says nothing about the time after it.
      if (result !== ABORTED && pauses === this.#pauses) this.#note(result, throttles);
      return result.status === 'retry' ? { ...result, ...this.#pause() } : result;
    } finally {
      this.#turns.done();
    }
  }

  /** Resolves when every request has been answered. */
  async close(): Promise<void> {
    if (!this.#pool.closed) await this.#pool.close();
  }

  async destroy(): Promise<void> {
    if (!this.#pool.destroyed) await this.#pool.destroy();
  }

  get #place(): string {
    return `target ${this.name}`;
  }

  /** The result of an event while the target is paused; null while it is not. */
  #pause(): (SendResult & { readonly status: 'retry' }) | null {
    const left = this.#pausedUntil - this.#context.clock.monotonic();
    const trouble = this.#trouble.now;
    if (left <= 0 || trouble === null) return null;
    return { status: 'retry', reason: trouble.detail, delayMs: left };
  }

  async #request(
    event: JournalEvent,
    signal: AbortSignal,
  ): Promise<{ result: SendResult; throttles: boolean }> {
    const { url } = this.#options;
    const { sign, timeout, retry } = this.#all;
    const now = this.#context.clock.now();
    const exchange = new Exchange();
    const timer = setTimeout(() => exchange.stop(new Error(`no answer in ${timeout} ms`)), timeout);
    const forget = onAbort(signal, () => exchange.stop(CUT));
    try {
      const answer = await exchange.run(this.#pool, {
        path: url.pathname + url.search,
        method: 'POST',
        headers: headersFor(event, this.#options, sign, now),
        body: event.body,
      });
      return { result: resultOf(this.#place, answer, retry, now), throttles: THROTTLING.has(answer.status) };
    } catch (error) {
      return { result: error === CUT ? ABORTED : failureOf(this.#place, error), throttles: false };
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  /** The one place that changes the mode. */
  #note(result: SendResult, throttles: boolean): void {
    if (result.status !== 'retry') {
      if (this.isPaused) this.#context.onChange(this.name, null);
      [this.#failures, this.#pauses, this.#pausedUntil] = [0, 0, 0];
      this.#trouble.end();
      this.#turns.narrow = false;
      this.#asked.delete(this.#options.url.href);
      return;
    }
    this.#failures += 1;
    if (!throttles && this.#pauses === 0 && this.#failures < FAILURES) return;
    const own = Math.min(PAUSE.longest, PAUSE.first * 2 ** Math.min(this.#pauses, 10));
    this.#pauses += 1;
    const { clock, onChange } = this.#context;
    this.#pausedUntil = clock.monotonic() + Math.max(own, throttles ? (result.delayMs ?? 0) : 0);
    if (this.#trouble.now === null) onChange(this.name, result.reason);
    const since = this.#trouble.shown?.since ?? clock.now();
    const trouble = { code: 'target_paused', detail: result.reason, since };
    this.#trouble.begin(trouble);
    if (throttles) this.#asked.set(this.#options.url.href, { until: this.#pausedUntil, trouble });
    this.#turns.narrow = true;
    this.#turns.dismiss();
  }
}

const CUT = new Error('the request was cut');

type Controller = Dispatcher.DispatchController;

/** One request. Its handler sees the answer's pieces, because a stream for each body costs as much as the rest. */
class Exchange implements Dispatcher.DispatchHandler {
  #controller: Controller | null = null;
  #stopped: Error | null = null;
  readonly #done = Promise.withResolvers<Answer>();
  #answer: Answer = { status: 0, retryAfter: undefined };
  #read = 0;

  /** Only a whole answer counts: a proxy can send a status and lose the rest. @throws an error of the connection, or that of `stop` */
  run(pool: Pool, request: Dispatcher.DispatchOptions): Promise<Answer> {
    pool.dispatch(request, this);
    return this.#done.promise;
  }

  stop(why: Error): void {
    this.#stopped ??= why;
    this.#controller?.abort(why);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#stopped !== null) controller.abort(this.#stopped);
  }

  /** Called for an informational answer, too. */
  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    this.#answer = { status, retryAfter: [headers['retry-after']].flat()[0] };
  }

  onResponseData(controller: Controller, piece: Buffer): void {
    this.#read += piece.length;
    if (this.#read <= ANSWER_BYTES) return;
    this.#done.resolve(this.#answer);
    controller.abort(CUT);
  }

  onResponseEnd(): void {
    this.#done.resolve(this.#answer);
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#done.reject(this.#stopped ?? error);
  }
}
