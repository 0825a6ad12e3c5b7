import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { ClaimCheck, Delivery, SendResult, Sink } from '../core/sink.ts';
import type { Item } from './item.ts';
import type { SinkCalls } from './sink-calls.ts';

/**
 * Sends one batch and finds the result of each item. Items are named by their index in the batch.
 *
 * Items above the sink's own limit are refused without being sent; where another sink keeps large events, a pointer is sent
 * instead, after the rest of the batch. When the sink refuses a batch without saying which event is to blame, the batch is
 * halved until it is one event, sent alone. Halves go one after the other, and nothing of a user follows an earlier event of
 * that user that has to be sent again.
 */
export class BatchSending {
  readonly #results: SendResult[] = [];
  readonly #sink: SinkCalls;
  readonly #batch: readonly Item[];
  readonly #signal: AbortSignal;
  /** By key, the first item that has to be sent again. */
  readonly #firstRetry = new Map<string, number>();

  constructor(sink: SinkCalls, batch: readonly Item[], signal: AbortSignal) {
    this.#sink = sink;
    this.#batch = batch;
    this.#signal = signal;
  }

  /** @returns a result for each item, in order */
  async send(): Promise<readonly SendResult[]> {
    const { limits, keep } = this.#sink;
    const sendable: number[] = [];
    for (let at = 0; at < this.#batch.length; at += 1) {
      const refusal = refusalOf(this.#batch[at] as Item, limits.eventBytes);
      if (refusal === null) sendable.push(at);
      else this.#set(at, refusal);
    }
    if (sendable.length > 0) await this.#attempt(sendable);
    if (keep !== null) await this.#sendPointers(keep);
    return this.#results;
  }

  /** One after the other: each is large, and nothing of a user may follow what has to be sent again. */
  async #sendPointers(keep: NonNullable<Sink['keep']>): Promise<void> {
    for (const [at, item] of this.#batch.entries()) {
      const result = this.#results[at];
      if (result?.status === 'refused' && result.code === TOO_LARGE)
        this.#set(at, this.#retryBefore(at) ?? (await this.#sendPointer(item, keep)));
    }
  }

  async #attempt(items: readonly number[]): Promise<void> {
    const batch = this.#batch;
    const isAll = items.length === batch.length;
    const answers = await this.#call(isAll ? batch : items.map((at) => batch[at] as Item));
    const suspects: number[] = [];
    for (let index = 0; index < items.length; index += 1) {
      const at = items[index] as number;
      const result = answers[index] ?? MISSING;
      // An event that was sent alone is surely to blame.
      if (result.status === 'refused' && result.batch === true && items.length > 1) suspects.push(at);
      else this.#set(at, result);
    }
    if (suspects.length === 0) return;
    const middle = Math.ceil(suspects.length / 2);
    for (const half of [suspects.slice(0, middle), suspects.slice(middle)]) {
      const free = half.filter((at) => {
        const retry = this.#retryBefore(at);
        if (retry !== undefined) this.#set(at, retry);
        return retry === undefined;
      });
      if (free.length > 0) await this.#attempt(free);
    }
  }

  async #sendPointer({ event, destination }: Item, keep: NonNullable<Sink['keep']>): Promise<SendResult> {
    try {
      const pointer = pointerTo(event, await keep(event, this.#signal));
      const [result = MISSING] = await this.#call([{ event: pointer, destination }]);
      return result;
    } catch (error) {
      return { status: 'retry', reason: `claim check: ${messageOf(error)}` };
    }
  }

  async #call(batch: readonly Delivery[]): Promise<readonly SendResult[]> {
    // The rest of a batch must not leave when its sink has stopped: by then other routes may redact it.
    if (this.#signal.aborted) return batch.map(() => STOPPED);
    try {
      return await this.#sink.send(batch, this.#signal);
    } catch (error) {
      return batch.map(() => ({ status: 'retry', reason: messageOf(error), sink: true }));
    }
  }

  #set(at: number, result: SendResult): void {
    this.#results[at] = result;
    if (result.status !== 'retry') return;
    const key = this.#batch[at]?.key ?? null;
    if (key !== null) this.#firstRetry.set(key, Math.min(at, this.#firstRetry.get(key) ?? at));
  }

  /** The result of an earlier item of the same key that has to be sent again. */
  #retryBefore(at: number): SendResult | undefined {
    const first = this.#firstRetry.get(this.#batch[at]?.key ?? '') ?? at;
    return first < at ? this.#results[first] : undefined;
  }
}

/** Why an item is not sent at all; null when it is. */
function refusalOf({ event, refusal }: Item, eventBytes: number): SendResult | null {
  if (refusal !== null) return { status: 'refused', code: 'not_redacted', reason: refusal };
  const size = event.body.length;
  if (size <= eventBytes) return null;
  const reason = `body of ${size} bytes is above the sink's limit of ${eventBytes}`;
  return { status: 'refused', code: TOO_LARGE, reason };
}

/** The event a sink gets instead of one that is too large for it: same metadata, and a body that says where to look. */
function pointerTo(event: JournalEvent, claim: ClaimCheck): JournalEvent {
  const body = Buffer.from(JSON.stringify({ claim_check: claim }));
  return { ...event, body, handling: { ...event.handling, claimCheck: true } };
}

/** The code of a refusal after which a pointer is sent. */
const TOO_LARGE = 'too_large';

const STOPPED: SendResult = { status: 'retry', reason: 'the sink is being closed', sink: true };
const MISSING: SendResult = { status: 'retry', reason: 'the sink gave no result', sink: true };
