import { type Clock, systemClock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import type { AppendResult } from '../core/ingest.ts';
import { MOST_EVENTS } from './batch.ts';
import { CommitPace } from './commit-pace.ts';
import type { Handled } from './segments/records.ts';

/** An event to be made durable. */
export interface Entry extends Handled {
  /** Reasons as JSON for an event that goes to quarantine. */
  readonly invalid: string | null;
  /** Replaces the event's id in deduplication. */
  readonly dedupKey: string | undefined;
}

/** An entry that waits for its commit. */
export interface PendingEvent extends Entry {
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: MillraceError) => void;
  readonly answered: Promise<AppendResult>;
}

/** Most bytes of one commit. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Gathers events into commits, one at a time: events that come while one runs are for the next. Two commits at a time measured no
 * faster.
 */
export class GroupCommit {
  readonly #perform: (batch: readonly PendingEvent[]) => Promise<() => void>;
  #waiting: PendingEvent[] = [];
  /** Settles with the running commit. */
  #last: Promise<unknown> = Promise.resolve();
  #isRunning = false;
  /** Cancels the commit that is scheduled. */
  #cancel: (() => void) | null = null;
  readonly #clock: Clock;
  readonly #pace = new CommitPace();

  /** @param perform resolves once a batch is committed or has failed, with a function that settles its events; never rejects */
  constructor(perform: (batch: readonly PendingEvent[]) => Promise<() => void>, clock: Clock = systemClock) {
    this.#perform = perform;
    this.#clock = clock;
  }

  add({ event, handling, invalid, dedupKey }: Entry): Promise<AppendResult> {
    const { promise: answered, resolve, reject } = Promise.withResolvers<AppendResult>();
    this.#waiting.push({ event, handling, invalid, dedupKey, resolve, reject, answered });
    this.#pace.arrived(this.#clock.monotonic(), this.#isRunning);
    this.#proceed();
    return answered;
  }

  /** Resolves when everything added before is settled. */
  async settled(): Promise<void> {
    // Waits for each: the newest events can be rejected while older ones are being committed.
    await Promise.allSettled([this.#last, ...this.#waiting.map(({ answered }) => answered)]);
  }

  /** Rejects the events that wait; not those of the running commit. */
  rejectAll(error: MillraceError): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  /** Commits what waits, or schedules that for when more events may have come. */
  #proceed(): void {
    if (this.#isRunning || this.#waiting.length === 0) return;
    const { enough, patience } = this.#pace;
    if (this.#waiting.length >= Math.min(enough, MOST_EVENTS)) return this.#commit();
    if (this.#cancel !== null) return;
    if (patience > 0) this.#cancel = this.#clock.after(patience, () => this.#commit());
    else {
      const soon = setImmediate(() => this.#commit());
      this.#cancel = () => clearImmediate(soon);
    }
  }

  #commit(): void {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#isRunning || this.#waiting.length === 0) return;
    const batch = this.#take();
    this.#last = batch.at(-1)?.answered ?? this.#last;
    this.#isRunning = true;
    this.#pace.began(this.#clock.monotonic());
    void this.#perform(batch).then((settle) => {
      this.#isRunning = false;
      this.#pace.ended(this.#clock.monotonic(), batch.length, this.#waiting.length);
      // The next batch is written while this thread answers.
      if (this.#pace.patience === 0) this.#commit();
      else this.#proceed();
      settle();
    });
  }

  #take(): PendingEvent[] {
    const most = Math.min(this.#pace.most, MOST_EVENTS);
    let bytes = 0;
    let count = 0;
    for (const { event } of this.#waiting) {
      if (count > 0 && (count >= most || bytes + event.body.length > MOST_BYTES)) break;
      bytes += event.body.length;
      count += 1;
    }
    if (count < this.#waiting.length) return this.#waiting.splice(0, count);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }
}
