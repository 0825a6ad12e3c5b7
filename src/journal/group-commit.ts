import type { MillraceError } from '../core/errors.ts';
import type { Event, Handling } from '../core/event.ts';
import type { AppendResult } from '../core/ingest.ts';

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
/** While commits hold many events, the next waits a millisecond for at least this many. */
const GATHER = 32;

/**
 * Gathers events into commits. Those of one turn of the event loop share one; what comes while it runs shares the next. A
 * second commit at the same time measured no faster.
 */
export class GroupCommit {
  readonly #perform: (batch: readonly Waiting[]) => Promise<() => void>;
  #waiting: Waiting[] = [];
  /** Settles with the running commit. */
  #last: Promise<unknown> = Promise.resolve();
  #running = false;
  #scheduled = false;
  #busy = false;

  /** @param perform ends without an error of its own when it is known what became of a batch, with what answers it */
  constructor(perform: (batch: readonly Waiting[]) => Promise<() => void>) {
    this.#perform = perform;
  }

  add({ event, handling, invalid, dedupKey }: Entry): Promise<AppendResult> {
    const { promise: answered, resolve, reject } = Promise.withResolvers<AppendResult>();
    this.#waiting.push({ event, handling, invalid, dedupKey, resolve, reject, answered });
    this.#schedule();
    return answered;
  }

  /** Resolves when everything added before has been answered. */
  settled(): Promise<void> {
    const last = this.#waiting.at(-1)?.answered ?? this.#last;
    return last.then(
      () => undefined,
      () => undefined,
    );
  }

  /** Rejects what waits; nothing that is already running. */
  rejectAll(error: MillraceError): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  /** Commits at the end of this turn of the event loop, or a moment later while much is coming in. */
  #schedule(): void {
    if (this.#scheduled || this.#running || this.#waiting.length === 0) return;
    this.#scheduled = true;
    const commit = (): void => {
      this.#scheduled = false;
      this.#commit();
    };
    if (this.#busy && this.#waiting.length < GATHER) setTimeout(commit, 1);
    else setImmediate(commit);
  }

  #commit(): void {
    if (this.#waiting.length === 0) return;
    const batch = this.#take();
    this.#busy = batch.length > GATHER / 4;
    this.#last = batch.at(-1)?.answered ?? this.#last;
    this.#running = true;
    void this.#perform(batch).then((answer) => {
      this.#running = false;
      // What waits is written while this thread answers.
      if (this.#waiting.length >= GATHER) this.#commit();
      else this.#schedule();
      answer();
    });
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { event } of this.#waiting) {
      if (count > 0 && (count >= BATCH.count || bytes + event.body.length > BATCH.bytes)) break;
      bytes += event.body.length;
      count += 1;
    }
    if (count < this.#waiting.length) return this.#waiting.splice(0, count);
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }
}
