import { messageOf } from '../core/errors.ts';
import type { SendResult } from '../core/sink.ts';
import type { DeadLetters } from './dead-letters.ts';
import type { DownTracker } from './down-tracker.ts';
import type { FeedEvents, FeedOptions } from './feed-options.ts';
import { Item } from './item.ts';
import type { Progress } from './progress.ts';
import { backoff } from './retry.ts';
import { BatchSending } from './send-batch.ts';
import type { SendQueue } from './send-queue.ts';
import type { SinkCalls } from './sink-calls.ts';

export interface SenderParts {
  readonly options: FeedOptions;
  readonly calls: SinkCalls;
  readonly pending: SendQueue;
  readonly progress: Progress;
  readonly deadLetters: DeadLetters;
  readonly down: DownTracker;
  /** Ends what is being sent. */
  readonly signal: AbortSignal;
}

/** An item that is sent again. */
interface Retry {
  readonly item: Item;
  readonly delayMs: number;
  readonly reason: string;
}

/** Sends batches of one sink, and settles, holds or retries each item by its result. */
export class Sender {
  /** Deliveries confirmed, and deliveries that were sent and have to be sent again. */
  readonly counts = { delivered: 0, retried: 0 };
  readonly #parts: SenderParts;
  readonly #events: FeedEvents;
  /** Wall clock minus monotonic clock at the start. */
  readonly #epoch: number;

  constructor(parts: SenderParts, events: FeedEvents) {
    const { clock } = parts.options;
    this.#parts = parts;
    this.#events = events;
    this.#epoch = clock.now() - clock.monotonic();
  }

  /** Never rejects. @param taken from `pending`, and given back to it */
  async send(taken: readonly Item[]): Promise<void> {
    const { options, calls, pending, progress, down, signal } = this.#parts;
    if ('untilCommitted' in options.journal) await options.journal.untilCommitted();
    const batch = progress.unforgotten(taken);
    if (batch.length < taken.length) this.#events.moved();
    if (batch.length === 0) return;
    const { name, tracing, observer, clock } = options;
    const now = clock.monotonic();
    for (const item of batch) {
      item.attempts += 1;
      item.firstTry ??= now;
    }
    const sending = new BatchSending(calls, batch, signal);
    const results = await (tracing?.deliver(name, batch, () => sending.send()) ?? sending.send());
    observer?.sent(name, batch, clock.monotonic() - now);
    try {
      await this.#settle(batch, results);
    } catch (error) {
      // A dead letter could not be stored: nothing was settled, all of it is sent again.
      pending.release([], batch);
      down.add(batch.length, 0);
      this.#events.failed(messageOf(error), 0);
    }
  }

  async #settle(batch: readonly Item[], results: readonly SendResult[]): Promise<void> {
    const { options, pending, progress, deadLetters, down } = this.#parts;
    const { name, retry, observer, journal } = options;
    const delivered: Item[] = [];
    const held: { item: Item; until: Promise<void> }[] = [];
    const dead: { item: Item; code: string; reason: string }[] = [];
    const later: Retry[] = [];
    /** Deliveries that were sent in vain, and the reason of the last one. Waiting for its turn is no error. */
    const failed = { count: 0, reason: null as string | null };
    /** What the sink says is wrong with itself, and the longest wait it asked for. */
    let trouble = null as { reason: string; delayMs: number } | null;
    for (let at = 0; at < batch.length; at += 1) {
      const item = batch[at] as Item;
      const result = results[at] as SendResult;
      if (result.status === 'refused') dead.push({ item, code: result.code, reason: result.reason });
      else if (result.status === 'delivered') delivered.push(item);
      else if (result.status === 'held') held.push({ item, until: result.until });
      else if (retry.giveUpAfter > 0 && this.#ageOf(item) >= retry.giveUpAfter)
        dead.push({ item, code: 'gave_up', reason: result.reason });
      else {
        const { reason, delayMs } = result;
        if (result.untried !== true) [failed.count, failed.reason] = [failed.count + 1, reason];
        if (result.sink === true)
          trouble = { reason, delayMs: Math.max(trouble?.delayMs ?? 0, delayMs ?? 0) };
        later.push({ item, delayMs: delayMs ?? backoff(item.attempts, retry), reason });
      }
    }
    for (const { item, code, reason: why } of dead) await deadLetters.add(item, code, why);
    down.answered(results);
    if (delivered.length > 0) observer?.delivered(name, delivered);
    if ('delivered' in journal)
      for (const { event, destination } of delivered) journal.delivered(name, event, destination);
    for (const { item, reason } of later) observer?.retried(name, item, reason);
    this.counts.delivered += delivered.length;
    this.counts.retried += failed.count;
    const settled = dead.length === 0 ? delivered : [...delivered, ...dead.map(({ item }) => item)];
    for (const item of settled) progress.settle(item);
    for (const { item, until } of held) progress.hold(item, until);
    const done = held.length === 0 ? settled : [...settled, ...held.map(({ item }) => item)];
    this.#events.moved();
    if (trouble === null) {
      this.#scheduleRetries(later, done);
      this.#events.batchAnswered(failed.reason, done.length > 0);
      return;
    }
    // The pause of the sink is the wait; what was not settled goes first after it.
    pending.release(
      done,
      later.map(({ item }) => item),
    );
    this.#events.failed(trouble.reason, trouble.delayMs);
  }

  /** The retries of a user come back together, after the longest of their waits; until then nothing of that user is sent. */
  #scheduleRetries(later: readonly Retry[], done: readonly Item[]): void {
    const { options, pending, progress } = this.#parts;
    if (later.length === 0) return pending.release(done);
    const groups = Map.groupBy(later, ({ item }) => item.key ?? item);
    const again = later.map(({ item }) => item);
    pending.postpone(again);
    for (const item of again) progress.destinations.retried(item);
    pending.release(done.filter((item) => !groups.has(item.key ?? item)));
    for (const group of groups.values()) {
      const items = group.map(({ item }) => item);
      const [first] = items;
      if (first !== undefined && progress.destinations.mustDefer(first)) {
        progress.defer([...items, ...pending.drop(first.key)]);
        continue;
      }
      options.clock.after(Math.max(...group.map(({ delayMs }) => delayMs)), () => {
        pending.release([], items);
        this.#events.ready();
      });
    }
  }

  /**
   * Milliseconds since the event was received, also over restarts; a clock that is set makes nothing older. For an event that a
   * person or a replay sends again: since its first try.
   */
  #ageOf(item: Item): number {
    const { clock } = this.#parts.options;
    const now = clock.monotonic();
    const tried = item.firstTry === null ? 0 : now - item.firstTry;
    const { receivedAt, handling, again = handling.only ?? null } = Item.originalOf(item);
    if (again !== null || handling.replayId !== undefined || handling.released === true) return tried;
    return Math.max(tried, Math.min(clock.now(), this.#epoch + now) - receivedAt);
  }
}
