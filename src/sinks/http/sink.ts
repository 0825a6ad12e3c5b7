import type { Clock } from '../../core/clock.ts';
import type { Delivery, SendResult, Sink, SinkContext, SinkTrouble } from '../../core/sink.ts';
import { orAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { ABORTED } from '../../vendors/failure.ts';
import type { Resolve } from './addresses.ts';
import type { HttpOptions } from './config.ts';
import { PATIENCE, Target } from './target.ts';

export function createSink(options: HttpOptions, context: SinkContext): Sink {
  return new HttpSink(options, context);
}

/** `send` calls at a time: as many as the dispatcher has events loaded, so that a slow target leaves room for the others. */
const IN_FLIGHT = 5000;

/**
 * Posts events to HTTP targets, a request for each event. Each target has its own connections, pace and pauses: a slow one delays
 * its own events only. The events of one user go to a target one after another.
 *
 * Modes: new → open (by `open`, which connects nothing) → closed.
 */
export class HttpSink implements Sink {
  readonly limits;
  readonly #targets: ReadonlyMap<string | null, Target>;
  readonly #missing: MissingTargets;
  readonly #running = new Set<Promise<unknown>>();
  /** True with one target: its trouble is the sink's. */
  readonly #isAlone: boolean;

  constructor(options: HttpOptions, { name: sink, log, clock }: SinkContext, resolve?: Resolve) {
    const onChange = (target: string, trouble: string | null): void => {
      if (trouble === null) log.info({ sink, target }, 'target works again');
      else log.warn({ sink, target, error: trouble }, 'target paused');
    };
    const context = { clock, onChange, ...(resolve === undefined ? {} : { resolve }) };
    this.#targets = new Map(
      options.targets.map((target) => [target.name, new Target(target, options, context)]),
    );
    this.#isAlone = options.targets.length === 1;
    this.#missing = new MissingTargets(clock);
    this.limits = {
      batchCount: 1,
      batchBytes: Number.POSITIVE_INFINITY,
      eventBytes: options.maxEventBytes,
      inFlight: this.#isAlone ? 2 * options.concurrency : IN_FLIGHT,
      order: 'user',
      batchBy: 'destination',
      sendTimeout: PATIENCE + 2 * options.timeout,
    } as const;
  }

  async open(): Promise<void> {}

  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const work = this.#send(batch, signal).finally(() => this.#running.delete(work));
    this.#running.add(work);
    return work;
  }

  troubles(): readonly SinkTrouble[] {
    const targets = Array.from(this.#targets.values(), ({ trouble }) => trouble);
    return [...targets.filter((one) => one !== null), ...this.#missing.troubles()];
  }

  /** Waits for requests in flight; after `signal` they are cut. */
  async close(signal: AbortSignal): Promise<void> {
    const targets = [...this.#targets.values()];
    await orAborted(Promise.all([...this.#running, ...targets.map((target) => target.close())]), signal);
    await Promise.all(targets.map((target) => target.destroy()));
  }

  /** Each user's events one after another: nothing of a user may follow what has to be sent again. */
  async #send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const [first] = batch;
    // What the dispatcher sends.
    if (first !== undefined && batch.length === 1) return [await this.#post(first, signal)];
    const results = Array.from(batch, () => ABORTED);
    const users = Map.groupBy(batch.entries(), ([index, { event }]) => event.user ?? index);
    const lanes = Array.from(users.values(), async (group) => {
      let held: SendResult | null = null;
      for (const [index, delivery] of group) {
        const result: SendResult = held ?? (await this.#post(delivery, signal));
        results[index] = result;
        if (result.status === 'retry') held = result;
      }
    });
    await Promise.all(lanes);
    return results;
  }

  async #post({ event, destination }: Delivery, signal: AbortSignal): Promise<SendResult> {
    if (signal.aborted) return ABORTED;
    const target = this.#targets.get(destination);
    if (target === undefined) return this.#missing.answer(destination);
    const result = await target.post(event, signal);
    const isSink = this.#isAlone && result.status === 'retry' && target.isPaused;
    return isSink ? { ...result, sink: true } : result;
  }
}

/** Milliseconds until an event asks for its missing target again. */
const ASK_AGAIN_MS = 60_000;

/**
 * Targets that events wait for and the config does not have, such as one removed before all of its events were delivered. The
 * events wait until the config is corrected.
 */
class MissingTargets {
  readonly #clock: Clock;
  readonly #asked = new Map<string | null, { readonly since: number; last: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The result of an event for this target. */
  answer(name: string | null): SendResult {
    const now = this.#clock.now();
    getOrMake(this.#asked, name, () => ({ since: now, last: now })).last = now;
    return { status: 'retry', reason: reasonOf(name), delayMs: ASK_AGAIN_MS, untried: true };
  }

  /** Those that events asked for lately: an event that still waits asks again. */
  troubles(): SinkTrouble[] {
    const now = this.#clock.now();
    for (const [name, { last }] of this.#asked) if (now - last > 2 * ASK_AGAIN_MS) this.#asked.delete(name);
    return Array.from(this.#asked, ([name, { since }]) => ({
      code: 'target_missing',
      detail: `${reasonOf(name)}, and events wait for it: put the target back under its name, or correct the routes`,
      since,
    }));
  }
}

function reasonOf(name: string | null): string {
  return name === null
    ? 'the route names no target, and the sink has no url'
    : `the sink has no target ${name}`;
}
