import PQueue from 'p-queue';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { TakenBack } from '../core/sink.ts';
import { onAbort, orAborted, untilAborted } from '../lib/abort.ts';
import { DownTracker } from './down-tracker.ts';
import { HeldDeliveries, type Seqs, seqsOf } from './held-deliveries.ts';
import type { FeedOptions, FeedStatus, Forgotten, Loaded } from './feed-options.ts';
import { Progress } from './progress.ts';
import { Loading } from './loader.ts';
import { QueueInOrder } from './queue-in-order.ts';
import { type Item, type SendQueue, QueuePerUser } from './send-queue.ts';
import { backoff } from './retry.ts';
import { Sending } from './sender.ts';
import { SinkCalls } from './sink-calls.ts';
import { Waiters } from './waiters.ts';

/** Milliseconds the start of the receiver waits for a sink that says neither yes nor no. */
const OPEN_WAIT = 5000;

type FeedMode = 'opening' | 'running' | 'paused' | 'draining' | 'stopped';

/**
 * Carries the journal to one sink. A feed shares nothing with other feeds: one that stands still holds back its own
 * cursor only.
 *
 * | mode     | loads | sends          | next                                                     |
 * | -------- | ----- | -------------- | -------------------------------------------------------- |
 * | opening  | no    | nothing        | running: `open` has succeeded                            |
 * | running  | yes   | batches        | paused: a call of the sink, or a read, has failed        |
 * | paused   | yes   | nothing        | running: the time is over; one batch at a time at first  |
 * | draining | no    | what is loaded | stopped: all that is sent, or a call has failed          |
 * | stopped  | no    | nothing        |                                                          |
 *
 * `stop` leads to draining from every mode. Only `#enter` changes the mode, and all that leads to a change is in this
 * file; what needs no mode (progress, retries, sending, loading) is not.
 */
export class Feed {
  readonly name: string;
  readonly #options: FeedOptions;
  readonly #calls: SinkCalls;
  readonly #pending: SendQueue;
  readonly #queue: PQueue;
  readonly #abort = new AbortController();
  readonly #loading: Loading;
  readonly #held: HeldDeliveries;
  readonly #progress: Progress;
  readonly #sending: Sending;
  readonly #down: DownTracker;
  #mode: FeedMode = 'opening';
  /** `start` has not answered: what waiting cannot mend is thrown. */
  #isStarting = false;
  #begun = false;
  /** Monotonic time at which the pause is over. */
  #pausedUntil = 0;
  /** Failures of the sink itself in a row. */
  #failures = 0;
  /** Times in a row that the sink has lost what it held. */
  #rejections = 0;
  /** Batches being sent. */
  readonly #underWay = new Set<Promise<void>>();
  #lastError: string | null = null;
  /** Monotonic time of the last `send`; and whether the next batch waits for more to come. */
  #lastSend = Number.NEGATIVE_INFINITY;
  #isLingering = false;
  readonly #waiters: Waiters;
  #unsubscribe: () => void = () => {};
  #wakeDrain: () => void = () => {};

  constructor(options: FeedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#calls = new SinkCalls(options);
    const { limits } = options.sink;
    const isOneByOne = limits.inFlight === 1 && limits.batchBy === 'mixed';
    this.#pending = isOneByOne ? new QueueInOrder(limits) : new QueuePerUser(limits);
    this.#held = new HeldDeliveries({
      onConfirmed: (deliveries, seqs) => this.#confirmed(deliveries, seqs),
      onRejected: (deliveries, reason) => this.#rejected(deliveries, reason),
    });
    this.#progress = new Progress(options, this.#pending, this.#held);
    const later = (callback: () => void): void => void options.clock.after(options.retry.max, callback);
    this.#waiters = new Waiters(this.#progress, () => this.#calls.flush(), later);
    this.#queue = new PQueue({ concurrency: limits.inFlight });
    this.#down = new DownTracker({
      clock: options.clock,
      after: options.downAfter ?? Infinity,
      callTime: limits.sendTimeout ?? 0,
      onChange: (isDown) => this.#wentUpOrDown(isDown),
    });
    this.#sending = new Sending(
      {
        options,
        calls: this.#calls,
        pending: this.#pending,
        progress: this.#progress,
        down: this.#down,
        signal: this.#abort.signal,
      },
      {
        onMoved: () => this.#moveCursor(),
        onTrouble: (reason, delayMs) => this.#trouble(reason, delayMs),
        onAnswered: (reason, hasProgressed) => this.#answered(reason, hasProgressed),
        onPending: () => this.#pump(),
      },
    );
    this.#loading = new Loading(options, this.#progress, this.#held, {
      onLoaded: () => {
        this.#moveCursor();
        this.#pump();
      },
      onFailed: (reason) => this.#trouble(reason),
      onTurn: () => this.#pump(),
    });
  }

  /**
   * Places the cursor and opens the sink. A sink that cannot be reached is tried again in the background, as is one that
   * does not say so soon; until then an error that waiting cannot mend (a MillraceError) is thrown.
   */
  async start(): Promise<void> {
    await this.#progress.open();
    const ends = [this.#loading.watch(), this.#options.journal.subscribe(() => this.#pump())];
    this.#unsubscribe = () => ends.forEach((end) => end());
    const overdue = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(OPEN_WAIT, () => {
      this.#lastError = `open has not answered within ${OPEN_WAIT / 1000}s`;
      overdue.resolve();
    });
    this.#isStarting = this.#options.patient !== true;
    try {
      await Promise.race([this.#open(1), overdue.promise]);
    } finally {
      cancel();
      this.#isStarting = false;
    }
  }

  /** From now on events are loaded, as soon as the sink is open. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#pump();
  }

  /** Resolves when everything up to and including this seq is settled; or, with `sent`, when what is not is held. */
  passed(seq: number, until: 'sent' | 'settled'): Promise<void> {
    return this.#waiters.passed(seq, until);
  }

  /** Never sends what is `owned` again: its data is being erased. What is in flight already is not held back. */
  forget(forgotten: Forgotten): void {
    this.#progress.forget(forgotten);
  }

  /** Settles when every batch that is in flight now has been answered, those given up for too slow an answer among them. */
  async answered(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    await this.#calls.answered();
  }

  /** What the sink had confirmed is gone. @returns how many dead letters that makes */
  takeBack(taken: TakenBack): Promise<number> {
    return this.#sending.deadLetters.takeBack(taken);
  }

  /** The newest event that could be loaded. */
  get lastSeq(): number {
    return this.#options.journal.lastSeq;
  }

  /** Everything up to and including this seq is settled. */
  get cursor(): number {
    return this.#progress.cursor;
  }

  status(): FeedStatus {
    return {
      sink: this.name,
      mode: this.#shownMode,
      ...this.#progress.status(),
      held: this.#held.count,
      inFlight: this.#queue.pending,
      ...this.#sending.counts,
      dead: this.#sending.deadLetters.count,
      lastError: this.#lastError,
      troubles: this.#calls.troubles(),
      skipped: this.#calls.skipped(),
    };
  }

  /** A pause is how a sink is tried again, not how it is: that is said by one rule for all who ask. */
  get #shownMode(): FeedStatus['mode'] {
    if (this.#mode !== 'running' && this.#mode !== 'paused') return this.#mode;
    return this.#lookDown() ? 'down' : 'running';
  }

  #lookDown(): boolean {
    const { waiting, lookedAt } = this.#progress.status();
    const isOpen = this.#begun && this.#mode !== 'opening';
    return this.#down.look(isOpen && (waiting > this.#held.count || this.lastSeq > lookedAt));
  }

  /** Finishes what is being sent and, unless it is `left`, what is loaded, while the sink takes it; the rest is kept. */
  async stop(signal: AbortSignal, loaded: Loaded = 'finished'): Promise<void> {
    if (this.#mode === 'stopped') return;
    const healthy = this.#mode === 'running';
    this.#unsubscribe();
    this.#enter('draining');
    if (healthy && loaded === 'finished') await this.#drained(signal);
    this.#enter('stopped');
    if (!healthy) this.#abort.abort();
    const forget = onAbort(signal, () => this.#abort.abort());
    // A sink that ignores its signal must not keep the process: what it has not confirmed is still in the journal.
    await orAborted(this.#queue.onIdle(), signal).finally(forget);
    // Before the sink finishes its files: what is in them must not look undelivered after a crash in between.
    await this.#options.journal.flush().catch(() => undefined);
    const { cursor } = this;
    await orAborted(this.#calls.close(signal), signal);
    // By closing it has confirmed what it held.
    if (this.cursor > cursor) await this.#options.journal.flush().catch(() => undefined);
  }

  /** Opens the sink; again and again in the background if it must. */
  async #open(tries: number): Promise<void> {
    const { name, clock, log, retry } = this.#options;
    const { signal } = this.#abort;
    try {
      await this.#calls.open(signal);
    } catch (error) {
      if (error instanceof MillraceError && this.#isStarting) throw error;
      const reason = messageOf(error);
      this.#lastError = reason;
      const retryInMs = Math.round(backoff(tries, retry));
      log.warn({ sink: name, error: reason, retryInMs }, 'sink did not open');
      clock.after(retryInMs, () => {
        if (!signal.aborted) void this.#open(tries + 1);
      });
      return;
    }
    this.#lastError = null;
    this.#enter('running');
    this.#pump();
  }

  #enter(mode: FeedMode): void {
    if (this.#mode === 'stopped' || (this.#mode === 'draining' && mode !== 'stopped')) return;
    if (this.#mode !== mode) {
      const fields = { sink: this.name, from: this.#mode, to: mode, error: this.#lastError };
      if (mode === 'paused') this.#options.log.warn(fields, 'sink paused');
      else if (this.#mode === 'paused' && mode === 'running')
        this.#options.log.info(fields, 'sink is tried again');
      else this.#options.log.info(fields, `sink ${mode}`);
    }
    this.#mode = mode;
  }

  /** Loads and sends as much as the bounds allow. Cheap when there is nothing to do. */
  #pump(): void {
    if (this.#mode === 'opening' || this.#mode === 'stopped') return;
    if (this.#begun && this.#mode !== 'draining') this.#loading.load(this.#isBusy);
    if (this.#mode === 'paused') return;
    // After trouble one batch probes; the rest follows once it got through.
    const lanes = this.#failures > 0 ? 1 : this.#queue.concurrency;
    while (this.#pending.ready && this.#queue.pending + this.#queue.size < lanes) {
      if (this.#lingers()) break;
      const batch = this.#pending.take(this.#loading.most);
      if (batch === null) break;
      // Pumped again once the queue has released the job, or a single lane would look taken for ever.
      void this.#queue.add(() => this.#tracked(batch)).then(() => this.#pump());
    }
    // What waits for a later retry is not waited for: it stays in the journal.
    if (!this.#isBusy) this.#wakeDrain();
  }

  get #isBusy(): boolean {
    return this.#pending.ready || this.#queue.pending + this.#queue.size > 0;
  }

  /** True when the sink would rather have a larger batch a little later, as it pays by the call; pumps again by then. */
  #lingers(): boolean {
    const { clock, sink } = this.#options;
    const { linger = 0 } = sink.limits;
    if (linger === 0 || this.#mode === 'draining' || this.#progress.lanes.count >= this.#loading.most)
      return false;
    const left = this.#lastSend + linger - clock.monotonic();
    if (left <= 0) return false;
    if (!this.#isLingering) {
      this.#isLingering = true;
      clock.after(left, () => {
        this.#isLingering = false;
        this.#pump();
      });
    }
    return true;
  }

  async #tracked(batch: readonly Item[]): Promise<void> {
    this.#lastSend = this.#options.clock.monotonic();
    const work = this.#sending.send(batch);
    this.#underWay.add(work);
    await work.finally(() => this.#underWay.delete(work));
  }

  #answered(reason: string | null, hasProgressed: boolean): void {
    if (reason !== null) this.#lastError = reason;
    if (!hasProgressed) return;
    this.#failures = 0;
    this.#lastError = null;
  }

  #trouble(reason: string, delayMs = 0): void {
    // What fails side by side fails once: its sink is no worse for having had many calls under way.
    if (this.#mode !== 'paused') this.#failures += 1;
    this.#lastError = reason;
    if (this.#mode === 'draining') {
      // No time to wait for it: what is left stays in the journal.
      this.#enter('stopped');
      this.#wakeDrain();
    }
    if (this.#mode === 'stopped') return;
    const pause = Math.max(delayMs, backoff(this.#failures, this.#options.retry));
    const until = this.#options.clock.monotonic() + pause;
    // Batches side by side can fail with different waits: the longest one holds.
    if (this.#mode === 'paused' && until <= this.#pausedUntil) return;
    this.#pausedUntil = until;
    this.#enter('paused');
    this.#options.clock.after(pause, () => {
      if (this.#mode !== 'paused' || this.#pausedUntil !== until) return;
      this.#enter('running');
      this.#pump();
    });
  }

  #confirmed(deliveries: number, seqs: Seqs): void {
    const { journal } = this.#options;
    this.#progress.confirmed(seqs);
    this.#sending.counts.delivered += deliveries;
    this.#rejections = 0;
    if (journal.delivered !== undefined)
      for (const [destination, seq] of seqsOf(seqs)) journal.delivered(this.name, { seq }, destination);
    this.#moveCursor();
  }

  #rejected(deliveries: number, cause: unknown): void {
    const reason = messageOf(cause);
    const fields = { sink: this.name, deliveries, reason };
    this.#options.log.warn(fields, 'what the sink held has to be sent again');
    this.#sending.counts.retried += deliveries;
    this.#down.add(0, -deliveries);
    this.#rejections += 1;
    this.#trouble(reason, backoff(this.#rejections, this.#options.retry));
  }

  #wentUpOrDown(isDown: boolean): void {
    const fields = { sink: this.name, error: this.#lastError };
    if (isDown) this.#options.log.error(fields, 'sink is down');
    else this.#options.log.info(fields, 'sink is up again');
  }

  #moveCursor(): void {
    this.#lookDown();
    this.#options.journal.moveCursor(this.name, this.#progress.cursor, this.#progress.note);
    this.#waiters.moved();
  }

  #drained(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeDrain = resolve;
      void untilAborted(signal).then(resolve);
      this.#pump();
    });
  }
}
