import { type Clock, systemClock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import type { Event, Handling } from '../core/event.ts';
import type { AppendResult } from '../core/ingest.ts';
import { CommitPace } from './commit-pace.ts';

/** What is handed in to be made durable. */
export interface Entry {
  readonly event: Event;
  readonly handling: Handling | undefined;
  /** Reasons as JSON for an event that goes to quarantine. */
  readonly invalid: string | null;
  /** What tells a repetition; the event's id when left out. */
  readonly dedupKey: string | undefined;
}

/** What waits for the commit that makes it durable. */
export interface Waiting extends Entry {
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: MillraceError) => void;
  readonly answered: Promise<AppendResult>;
}

/** Events and bytes of one group commit at most. */
const BATCH = { count: 1024, bytes: 16 * 1024 * 1024 };

/**
 * Gathers events into commits, one at a time: what comes while one runs is for the next. A second commit at the same time measured
 * no faster.
 */
export class GroupCommit {
  readonly #perform: (batch: readonly Waiting[]) => Promise<() => void>;
  #waiting: Waiting[] = [];
  /** Settles with the running commit. */
  #last: Promise<unknown> = Promise.resolve();
  #running = false;
  /** Takes back the commit that is to begin a moment later. */
  #forget: (() => void) | null = null;
  readonly #clock: Clock;
  readonly #pace = new CommitPace();

  /** @param perform ends without an error of its own when it is known what became of a batch, with what answers it */
  constructor(perform: (batch: readonly Waiting[]) => Promise<() => void>, clock: Clock = systemClock) {
    this.#perform = perform;
    this.#clock = clock;
  }

  add({ event, handling, invalid, dedupKey }: Entry): Promise<AppendResult> {
    const { promise: answered, resolve, reject } = Promise.withResolvers<AppendResult>();
    this.#waiting.push({ event, handling, invalid, dedupKey, resolve, reject, answered });
    this.#pace.arrived(this.#clock.monotonic(), this.#running);
    this.#proceed();
    return answered;
  }

  /** Resolves when everything added before has been answered. */
  async settled(): Promise<void> {
    // All of them: those that came last can be rejected while others are being committed.
    await Promise.allSettled([this.#last, ...this.#waiting.map(({ answered }) => answered)]);
  }

  /** Rejects what waits; nothing that is already running. */
  rejectAll(error: MillraceError): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  /** Commits what waits: now, or a moment later when more may come. */
  #proceed(): void {
    if (this.#running || this.#waiting.length === 0) return;
    const { enough, patience } = this.#pace;
    if (this.#waiting.length >= Math.min(enough, BATCH.count)) return this.#commit();
    if (this.#forget !== null) return;
    if (patience > 0) this.#forget = this.#clock.after(patience, () => this.#commit());
    else {
      const soon = setImmediate(() => this.#commit());
      this.#forget = () => clearImmediate(soon);
    }
  }

  #commit(): void {
    this.#forget?.();
    this.#forget = null;
    if (this.#running || this.#waiting.length === 0) return;
    const batch = this.#take();
    this.#last = batch.at(-1)?.answered ?? this.#last;
    this.#running = true;
    this.#pace.began(this.#clock.monotonic());
    void this.#perform(batch).then((answer) => {
      this.#running = false;
      this.#pace.ended(this.#clock.monotonic(), batch.length, this.#waiting.length);
      // What waits is written while this thread answers.
      if (this.#pace.patience === 0) this.#commit();
      else this.#proceed();
      answer();
    });
  }

  #take(): Waiting[] {
    const most = Math.min(this.#pace.most, BATCH.count);
    let bytes = 0;
    let count = 0;
    for (const { event } of this.#waiting) {
      if (count > 0 && (count >= most || bytes + event.body.length > BATCH.bytes)) break;
      bytes += event.body.length;
      count += 1;
    }
    if (count < this.#waiting.length) return this.#waiting.splice(0, count);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }
}
