import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import { DeadLetters } from './dead-letters.ts';
import type { DownTracker } from './down-tracker.ts';
import type { FeedOptions } from './feed-options.ts';
import type { Progress } from './progress.ts';
import { Item, type SendQueue } from './send-queue.ts';
import { backoff } from './retry.ts';
import { type Outcome, sendBatch } from './send-batch.ts';
import type { SinkCalls } from './sink-calls.ts';

export interface SendingParts {
  readonly options: FeedOptions;
  readonly calls: SinkCalls;
  readonly pending: SendQueue;
  readonly progress: Progress;
  readonly down: DownTracker;
  /** Ends what is being sent. */
  readonly signal: AbortSignal;
}

export interface SendingEvents {
  /** Something was settled, or is held. */
  readonly onMoved: () => void;
  /** The sink itself is in trouble; `delayMs` is the wait it asked for, or 0. */
  readonly onTrouble: (reason: string, delayMs: number) => void;
  /** A batch was answered without trouble: why some of it is to be sent again, null when nothing is. */
  readonly onAnswered: (reason: string | null, hasProgressed: boolean) => void;
  /** What was to be sent again later is pending. */
  readonly onPending: () => void;
}

/** Sends batches of one sink, and does with each delivery what the answer says. */
export class Sending {
  readonly #parts: SendingParts;
  readonly #events: SendingEvents;
  /** Deliveries confirmed, and those that had to be sent again. */
  readonly counts = { delivered: 0, retried: 0 };
  readonly deadLetters: DeadLetters;
  readonly #ages: Ages;

  constructor(parts: SendingParts, events: SendingEvents) {
    this.#parts = parts;
    this.deadLetters = new DeadLetters(parts.options);
    this.#ages = new Ages(parts.options.clock);
    this.#events = events;
  }

  /** Never rejects. @param taken from `pending`, and given back to it */
  async send(taken: readonly Item[]): Promise<void> {
    const { options, calls, pending, progress, down, signal } = this.#parts;
    if (options.journal.noted !== undefined) await options.journal.noted();
    const batch = progress.unforgotten(taken);
    if (batch.length < taken.length) this.#events.onMoved();
    if (batch.length === 0) return;
    const { name, tracing, observer, clock } = options;
    const now = clock.monotonic();
    for (const item of batch) {
      item.attempts += 1;
      item.firstTry ??= now;
    }
    const send = (): Promise<Outcome[]> => sendBatch(calls, batch, signal);
    const outcomes = await (tracing === undefined ? send() : tracing.deliver(name, batch, send));
    observer?.sent(name, batch, clock.monotonic() - now);
    try {
      await this.#settle(outcomes);
    } catch (error) {
      // A dead letter could not be stored: nothing was settled, all of it is sent again.
      pending.release([], batch);
      down.add(batch.length, 0);
      this.#events.onTrouble(messageOf(error), 0);
    }
  }

  async #settle(outcomes: readonly Outcome[]): Promise<void> {
    const { options, pending, progress, down } = this.#parts;
    const { name, retry, observer, journal } = options;
    const delivered: Item[] = [];
    const held: { item: Item; until: Promise<void> }[] = [];
    const dead: { item: Item; code: string; reason: string }[] = [];
    const later: Retry[] = [];
    /** Why the last of `later` has to wait. */
    let reason: string | null = null;
    /** What the sink itself says is wrong with it, and the longest wait it asked for. */
    let trouble = null as { reason: string; delayMs: number } | null;
    for (const { item, result } of outcomes) {
      if (result.status === 'refused') dead.push({ item, code: result.code, reason: result.reason });
      else if (result.status === 'delivered') delivered.push(item);
      else if (result.status === 'held') held.push({ item, until: result.until });
      else if (retry.giveUpAfter > 0 && this.#ages.of(item) >= retry.giveUpAfter)
        dead.push({ item, code: 'gave_up', reason: result.reason });
      else {
        ({ reason } = result);
        if (result.sink === true)
          trouble = { reason, delayMs: Math.max(trouble?.delayMs ?? 0, result.delayMs ?? 0) };
        later.push({ item, delayMs: result.delayMs ?? backoff(item.attempts, retry) });
      }
    }
    for (const letter of dead) await this.deadLetters.add(letter.item, letter.code, letter.reason);
    down.answered(outcomes);
    if (delivered.length > 0) observer?.delivered(name, delivered);
    if (journal.delivered !== undefined)
      for (const { event, destination } of delivered) journal.delivered(name, event, destination);
    for (const { item } of later) observer?.retried(name, item, reason);
    this.counts.delivered += delivered.length;
    this.counts.retried += later.length;
    const settled = dead.length === 0 ? delivered : [...delivered, ...dead.map(({ item }) => item)];
    for (const item of settled) progress.settle(item);
    for (const { item, until } of held) progress.hold(item, until);
    const done = held.length === 0 ? settled : [...settled, ...held.map(({ item }) => item)];
    this.#events.onMoved();
    if (trouble === null) {
      this.#scheduleRetries(later, done);
      this.#events.onAnswered(reason, done.length > 0);
      return;
    }
    // The pause of the sink is the wait; whatever was not settled goes first after it.
    const again = later.map(({ item }) => item);
    pending.release(done, again);
    this.#events.onTrouble(trouble.reason, trouble.delayMs);
  }

  /** Until the retries of a user come back, together and after the longest of their waits, nothing of that user is sent. */
  #scheduleRetries(later: readonly Retry[], settled: readonly Item[]): void {
    const { options, pending, progress } = this.#parts;
    if (later.length === 0) return pending.release(settled);
    const groups = Map.groupBy(later, ({ item }) => item.key ?? item);
    const again = later.map(({ item }) => item);
    pending.postpone(again);
    for (const item of again) progress.lanes.inVain(item);
    pending.release(settled.filter((item) => !groups.has(item.key ?? item)));
    for (const group of groups.values()) {
      const items = group.map(({ item }) => item);
      const [first] = items;
      if (first !== undefined && progress.lanes.takesFarTooMuch(first)) {
        progress.leave([...items, ...pending.drop(first.key)]);
        continue;
      }
      options.clock.after(Math.max(...group.map(({ delayMs }) => delayMs)), () => {
        pending.release([], items);
        this.#events.onPending();
      });
    }
  }
}

/** To be tried again. */
interface Retry {
  readonly item: Item;
  readonly delayMs: number;
}

/** How old deliveries are, for who gives up on them. */
class Ages {
  readonly #clock: Clock;
  /** What a clock that nobody sets would add to the monotonic time. */
  readonly #begin: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#begin = clock.now() - clock.monotonic();
  }

  /**
   * Milliseconds since the event was received; a restart begins nothing anew. Of one that was put back, released or is replayed: since it
   * was tried first, for it is wanted however old it is. A clock that is set makes nothing older.
   */
  of(item: Item): number {
    const now = this.#clock.monotonic();
    const tried = item.firstTry === null ? 0 : now - item.firstTry;
    const { receivedAt, handling, again = handling.only ?? null } = Item.originalOf(item);
    if (again !== null || handling.replayId !== undefined || handling.released === true) return tried;
    return Math.max(tried, Math.min(this.#clock.now(), this.#begin + now) - receivedAt);
  }
}
