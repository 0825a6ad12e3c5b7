import { MillraceError, messageOf } from '../core/errors.ts';
import { onAbort, orAborted, untilAborted } from '../lib/abort.ts';
import { Steady } from '../lib/steady.ts';
import { DownTracker } from './down-tracker.ts';
import { DeadLetters } from './dead-letters.ts';
import type { FeedEvents, FeedOptions, FeedStatus, SeqsByDestination } from './feed-options.ts';
import type { Item } from './item.ts';
import { Loader } from './loader.ts';
import { Progress } from './progress.ts';
import { backoff } from './retry.ts';
import { QueueInOrder, QueuePerUser, type SendQueue } from './send-queue.ts';
import { Sender } from './sender.ts';
import { settledAheadOf } from './settled-ahead.ts';
import { SinkCalls } from './sink-calls.ts';
import { Waiters } from './waiters.ts';

/** Milliseconds that a start waits for a sink that does not answer `open`; it then opens in the background. */
const OPEN_WAIT = 5000;

/** Milliseconds for which an error that comes and goes is shown after its end. */
const ERROR_SHOWN_MS = 10_000;

type FeedMode = 'opening' | 'running' | 'paused' | 'draining' | 'stopped';

/**
 * Delivers the journal to one sink. Feeds share nothing: one that stands still holds back its own cursor only.
 *
 * | mode     | loads | sends          | next                                                        |
 * | -------- | ----- | -------------- | ----------------------------------------------------------- |
 * | opening  | no    | nothing        | running: `open` has succeeded                               |
 * | running  | yes   | batches        | paused: the sink, or a read of the journal, has failed      |
 * | paused   | yes   | nothing        | running: the pause is over; then one batch at a time        |
 * | draining | no    | what is loaded | stopped: all of it is sent, or a call has failed            |
 * | stopped  | no    | nothing        |                                                             |
 *
 * `stop` leads to draining from every mode. Only `#enter` changes the mode, and every reason for a change is in this file; what
 * needs no mode (progress, retries, sending, loading) is in others.
 */
export class Feed implements FeedEvents {
  readonly name: string;
  readonly progress: Progress;
  readonly deadLetters: DeadLetters;
  readonly #options: FeedOptions;
  readonly #calls: SinkCalls;
  readonly #pending: SendQueue;
  readonly #abort = new AbortController();
  readonly #loader: Loader;
  readonly #sender: Sender;
  readonly #down: DownTracker;
  readonly #waiters: Waiters;
  readonly #inFlight = new Set<Promise<void>>();
  #mode: FeedMode = 'opening';
  /** `start` waits: it throws errors that waiting cannot mend. */
  #isStarting = false;
  #begun = false;
  /** Monotonic time at which the pause is over. */
  #pausedUntil = 0;
  /** Failures of the sink itself in a row. */
  #failures = 0;
  /** Times in a row that the sink has lost what it held. */
  #losses = 0;
  /** The last error, until the sink accepts something. */
  readonly #error: Steady<string>;
  /** Monotonic time of the last `send`. */
  #lastSend = Number.NEGATIVE_INFINITY;
  /** The next batch waits for more events. */
  #isLingering = false;
  #unsubscribe: () => void = () => {};
  #wakeDrain: () => void = () => {};

  constructor(options: FeedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#calls = new SinkCalls(options);
    const { clock, downAfter = Infinity } = options;
    this.#error = new Steady(clock, ERROR_SHOWN_MS);
    const { limits } = options.sink;
    const isInOrder = limits.inFlight === 1 && limits.batchBy === 'mixed';
    this.#pending = isInOrder ? new QueueInOrder(limits) : new QueuePerUser(limits);
    this.progress = new Progress(options, this.#pending, this);
    this.deadLetters = new DeadLetters(options);
    this.#loader = new Loader(options, this.progress, this);
    this.#down = new DownTracker({
      clock,
      after: downAfter,
      callTime: limits.sendTimeout ?? 0,
      onChange: (isDown) => this.#wentUpOrDown(isDown),
    });
    const { progress, deadLetters } = this;
    const parts = { calls: this.#calls, pending: this.#pending, progress, deadLetters, down: this.#down };
    this.#sender = new Sender({ ...parts, options, signal: this.#abort.signal }, this);
    this.#waiters = new Waiters(options, progress, this.#calls);
  }

  /**
   * Reads the cursor and opens the sink. A sink that cannot be reached, or does not answer within 5 s, is opened in the
   * background.
   * @throws MillraceError for what waiting cannot mend, within that time
   */
  async start(): Promise<void> {
    const { journal } = this.#options;
    const cursor = await journal.openCursor(this.name);
    this.progress.begin(cursor, await settledAheadOf(this.name, this.#options));
    const ends = [this.#loader.watch(), journal.subscribe(() => this.ready())];
    this.#unsubscribe = () => ends.forEach((end) => end());
    const overdue = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(OPEN_WAIT, () => {
      this.#error.begin(`open has not answered within ${OPEN_WAIT / 1000}s`);
      overdue.resolve();
    });
    this.#isStarting = this.#options.patient !== true;
    try {
      await Promise.race([this.#open(1), overdue.promise]);
    } catch (error) {
      this.#unsubscribe();
      throw error;
    } finally {
      cancel();
      this.#isStarting = false;
    }
  }

  /** From now on events are loaded, as soon as the sink is open. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.ready();
  }

  /** As `Waiters.passed`, of all that the journal holds now. */
  passed(until: 'sent' | 'settled'): Promise<void> {
    return this.#waiters.passed(this.#options.journal.lastSeq, until);
  }

  /** After `stop`. @param forget as `EventLog.releaseCursor` */
  releaseCursor(forget: boolean): void {
    this.#options.journal.releaseCursor(this.name, forget);
  }

  /** Resolves when every batch that is in flight now has been answered, also those that are overdue. */
  async answered(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
    await this.#calls.answered();
  }

  /** Whether the sink accepts what it is sent. One that failed and is retried does not yet. */
  get isWell(): boolean {
    return this.#shownMode === 'running' && this.#error.now === null;
  }

  status(): FeedStatus {
    const { sink } = this.#options;
    const mode = this.#shownMode;
    return {
      sink: this.name,
      mode,
      ...this.progress.status(),
      inFlight: this.#inFlight.size,
      ...this.#sender.counts,
      dead: this.deadLetters.count,
      lastError: this.#error.shown ?? (mode === 'down' ? this.#whyDown : null),
      troubles: this.#calls.troubles(),
      skipped: Object.fromEntries(sink.skipped?.() ?? []),
      newest: Object.fromEntries(sink.newest?.() ?? []),
    };
  }

  /** A pause is shown as running: only `DownTracker` says that a sink is down. */
  get #shownMode(): FeedStatus['mode'] {
    if (this.#mode !== 'running' && this.#mode !== 'paused') return this.#mode;
    return this.#lookDown() ? 'down' : 'running';
  }

  /** Of a sink that is down without an error. */
  get #whyDown(): string | null {
    if (this.#down.isBetter)
      return 'it delivers again, and is up when that has lasted for delivery.downAfter';
    return this.#inFlight.size > 0 ? 'send has not answered yet' : null;
  }

  #lookDown(): boolean {
    const { waiting, held, lookedAt } = this.progress.status();
    const isOpen = this.#begun && this.#mode !== 'opening';
    return this.#down.look(isOpen && (waiting > held || this.#options.journal.lastSeq > lookedAt));
  }

  /**
   * Waits for batches in flight, sends what is loaded while the sink takes it, and closes the sink. The rest stays in the journal.
   * @param sendsLoaded false leaves what is loaded in the journal, too
   */
  async stop(signal: AbortSignal, sendsLoaded = true): Promise<void> {
    if (this.#mode === 'stopped') return;
    const isRunning = this.#mode === 'running';
    this.#unsubscribe();
    this.#enter('draining');
    if (isRunning && sendsLoaded) await this.#drained(signal);
    this.#enter('stopped');
    if (!isRunning) this.#abort.abort();
    const forget = onAbort(signal, () => this.#abort.abort());
    // Not for longer, also when the sink ignores its signal: what it has not confirmed is in the journal.
    await orAborted(Promise.all(this.#inFlight), signal).finally(forget);
    // Before the sink closes its files: what is in them must not look undelivered after a crash in between.
    await this.#options.journal.flush().catch(() => undefined);
    const { cursor } = this.progress;
    await orAborted(this.#calls.close(signal), signal);
    // A sink that closes confirms what it held.
    if (this.progress.cursor > cursor) await this.#options.journal.flush().catch(() => undefined);
  }

  /** Opens the sink; after an error again, in the background. */
  async #open(tries: number): Promise<void> {
    const { name, clock, log, retry } = this.#options;
    const { signal } = this.#abort;
    try {
      await this.#calls.open(signal);
    } catch (error) {
      if (error instanceof MillraceError && this.#isStarting) throw error;
      const reason = messageOf(error);
      this.#error.begin(reason);
      const retryInMs = Math.round(backoff(tries, retry));
      log.warn({ sink: name, error: reason, retryInMs }, 'sink did not open');
      clock.after(retryInMs, () => {
        if (!signal.aborted) void this.#open(tries + 1);
      });
      return;
    }
    this.#error.end();
    this.#enter('running');
    this.ready();
  }

  #enter(mode: FeedMode): void {
    if (this.#mode === 'stopped' || (this.#mode === 'draining' && mode !== 'stopped')) return;
    if (this.#mode !== mode) {
      const fields = { sink: this.name, from: this.#mode, to: mode, error: this.#error.now };
      if (mode === 'paused') this.#options.log.warn(fields, 'sink paused');
      else if (this.#mode === 'paused' && mode === 'running')
        this.#options.log.info(fields, 'sink is tried again');
      else this.#options.log.info(fields, `sink ${mode}`);
    }
    this.#mode = mode;
  }

  /** Loads and sends as much as the bounds allow. Cheap when there is nothing to do. */
  ready(): void {
    if (this.#mode === 'opening' || this.#mode === 'stopped') return;
    if (this.#begun && this.#mode !== 'draining') this.#loader.load(this.#isBusy);
    if (this.#mode === 'paused') return;
    // After trouble one batch at a time, until one is answered without.
    const concurrency = this.#failures > 0 ? 1 : this.#calls.limits.inFlight;
    while (this.#pending.ready && this.#inFlight.size < concurrency) {
      if (this.#lingers()) break;
      const batch = this.#pending.take(this.#loader.catchUp.batchCount);
      if (batch === null) break;
      this.#send(batch);
    }
    // Draining does not wait for items that wait for a retry: they stay in the journal.
    if (!this.#isBusy) this.#wakeDrain();
  }

  get #isBusy(): boolean {
    return this.#pending.ready || this.#inFlight.size > 0;
  }

  /** Whether a sink that pays by the call gets a larger batch a little later; pumps again then. */
  #lingers(): boolean {
    const { clock, sink } = this.#options;
    const { linger = 0 } = sink.limits;
    const isFull = this.progress.destinations.count >= this.#loader.catchUp.batchCount;
    if (linger === 0 || isFull || this.#mode === 'draining') return false;
    const left = this.#lastSend + linger - clock.monotonic();
    if (left <= 0) return false;
    if (!this.#isLingering) {
      this.#isLingering = true;
      clock.after(left, () => {
        this.#isLingering = false;
        this.ready();
      });
    }
    return true;
  }

  #send(batch: readonly Item[]): void {
    this.#lastSend = this.#options.clock.monotonic();
    const work = this.#sender.send(batch).then(() => {
      this.#inFlight.delete(work);
      this.ready();
    });
    this.#inFlight.add(work);
  }

  batchAnswered(reason: string | null, hasProgressed: boolean): void {
    if (reason !== null) this.#error.begin(reason);
    if (!hasProgressed) return;
    this.#failures = 0;
    this.#error.end();
  }

  failed(reason: string, delayMs: number): void {
    // Calls side by side that fail together count as one failure.
    if (this.#mode !== 'paused') this.#failures += 1;
    this.#error.begin(reason);
    if (this.#mode === 'draining') {
      this.#enter('stopped');
      this.#wakeDrain();
    }
    if (this.#mode === 'stopped') return;
    const pause = Math.max(delayMs, backoff(this.#failures, this.#options.retry));
    const until = this.#options.clock.monotonic() + pause;
    // Of batches that fail together, the longest wait counts.
    if (this.#mode === 'paused' && until <= this.#pausedUntil) return;
    this.#pausedUntil = until;
    this.#enter('paused');
    this.#options.clock.after(pause, () => {
      if (this.#mode !== 'paused' || this.#pausedUntil !== until) return;
      this.#enter('running');
      this.ready();
    });
  }

  confirmed(deliveries: number, seqs: SeqsByDestination): void {
    const { journal } = this.#options;
    this.#sender.counts.delivered += deliveries;
    this.#losses = 0;
    if ('delivered' in journal)
      for (const [destination, own] of seqs)
        for (const seq of own.values()) journal.delivered(this.name, { seq }, destination);
    this.moved();
  }

  lost(deliveries: number, cause: unknown): void {
    const reason = messageOf(cause);
    const fields = { sink: this.name, deliveries, reason };
    this.#options.log.warn(fields, 'the sink has lost what it held; it is sent again');
    this.#sender.counts.retried += deliveries;
    this.#down.add(0, -deliveries);
    this.#losses += 1;
    this.failed(reason, backoff(this.#losses, this.#options.retry));
  }

  #wentUpOrDown(isDown: boolean): void {
    const fields = { sink: this.name, error: this.#error.now };
    if (isDown) this.#options.log.error(fields, 'sink is down');
    else this.#options.log.info(fields, 'sink is up again');
  }

  moved(): void {
    this.#lookDown();
    this.#options.journal.moveCursor(this.name, this.progress.cursor, this.progress.note);
    this.#waiters.moved();
  }

  #drained(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeDrain = resolve;
      void untilAborted(signal).then(resolve);
      this.ready();
    });
  }
}
