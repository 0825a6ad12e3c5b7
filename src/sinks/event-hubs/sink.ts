import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { onAbort, orAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { mapAtMost } from '../../lib/map-at-most.ts';
import type { Batch } from '../../vendors/event-hubs/batch.ts';
import { toFailure } from '../../vendors/event-hubs/failure.ts';
import { partitionKeyOf, toMessage, type Message } from '../../vendors/event-hubs/message.ts';
import { Producer } from '../../vendors/event-hubs/producer.ts';
import { heldBy, resultOf, troubleWith } from '../../vendors/failure.ts';
import { toMessages } from '../../vendors/message.ts';
import { eventBytesOf, opened, Sends } from '../broker.ts';
import type { EventHubsOptions } from './config.ts';

export function createSink(options: EventHubsOptions, context: SinkContext): Sink {
  return new EventHubsSink(options, context);
}

/** Messages of one `send` that wait for their confirmation at the same time; a link's credit is a few hundred. */
const LANES = 32;
const IN_FLIGHT = 4;

/** A message, and the index of its delivery in the batch. */
interface Entry {
  readonly index: number;
  readonly message: Message;
}

/** One `send`. */
interface Job {
  readonly producer: Producer;
  readonly results: SendResult[];
  readonly signal: AbortSignal;
  /** Set once the hub is in trouble. Nothing more is tried then: each message would wait for its time-out. */
  trouble: SendResult | null;
}

/**
 * Sends events to Event Hubs, in as few messages as partition keys allow, many messages at a time.
 *
 * Modes: new → open (by `open`, which proves the default hub) → closed. A hub gets its producer on first use; one that fails
 * again and again is replaced.
 */
export class EventHubsSink implements Sink {
  readonly limits;
  readonly #options: EventHubsOptions;
  readonly #context: SinkContext;
  readonly #producers = new Map<string, Producer>();
  readonly #sends = new Sends();
  readonly #retiring = new Set<Promise<void>>();

  constructor(options: EventHubsOptions, context: SinkContext) {
    this.#options = options;
    this.#context = context;
    this.limits = {
      batchCount: options.batch.count,
      batchBytes: options.batch.bytes,
      eventBytes: eventBytesOf(options),
      inFlight: IN_FLIGHT,
      order: 'user',
      batchBy: 'destination',
    } as const;
  }

  /** Opens a link to the default hub, if there is one. @throws Error when it cannot be opened */
  async open(signal: AbortSignal): Promise<void> {
    const { hub } = this.#options;
    if (hub === null) return;
    const producer = this.#producer(hub);
    await opened(producer.open(), signal, (error) => `${producer.place}: ${toFailure(error).reason}`);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const hub = batch[0]?.destination ?? this.#options.hub;
    if (hub === null) return batch.map(() => NO_HUB);
    return this.#sends.run(batch, signal, async (results) => {
      // Its own signal: the SDK adds a listener for each message, and the dispatcher's signal is shared by every send.
      const stop = new AbortController();
      const forget = onAbort(signal, () => stop.abort());
      const job = { producer: this.#producer(hub), results, signal: stop.signal, trouble: null };
      await this.#send(batch, job).finally(forget);
    });
  }

  /** Waits for all sends in flight, then closes every connection. */
  async close(signal: AbortSignal): Promise<void> {
    await this.#sends.ended(signal);
    for (const producer of this.#producers.values()) this.#retire(producer);
    this.#producers.clear();
    await orAborted(Promise.all(this.#retiring), signal);
  }

  async #send(batch: readonly Delivery[], job: Job): Promise<void> {
    const messages = await toMessages(batch, this.#options.compression, (event, body, isZipped) => ({
      key: partitionKeyOf(event),
      message: toMessage(event, body, isZipped),
    }));
    const entries = messages.map(({ key, message }, index) => ({ key, index, message }));
    const groups = [...Map.groupBy(entries, ({ key }) => key)];
    await mapAtMost(LANES, groups, ([key, group]) => sendGroup(job, key, group));
    if (job.producer.worn) this.#replace(job.producer);
  }

  #producer(hub: string): Producer {
    const { connection, timeout, maxEventBytes: maxBytes } = this.#options;
    return getOrMake(this.#producers, hub, () => new Producer({ connection, hub, timeout, maxBytes }));
  }

  #replace(producer: Producer): void {
    const { hub } = producer;
    if (this.#producers.get(hub) !== producer) return;
    this.#producers.delete(hub);
    this.#context.log.warn({ sink: this.#context.name, hub }, 'replacing the connection to the event hub');
    this.#retire(producer);
  }

  #retire(producer: Producer): void {
    const retired = producer
      .retire()
      .catch(() => undefined)
      .finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
  }
}

/** Sends the events of one key one message after another; nothing of them follows what has to be sent again. */
async function sendGroup(job: Job, key: string | null, group: readonly Entry[]): Promise<void> {
  const { results, signal } = job;
  let left = group;
  let held = job.trouble;
  while (held === null && left.length > 0 && !signal.aborted) {
    const { count, result } = await sendMessage(job, key, left);
    for (const { index } of left.slice(0, count)) results[index] = result;
    left = left.slice(count);
    held = heldBy(result);
    if (result.status === 'retry') job.trouble ??= result;
  }
  if (held !== null) for (const { index } of left) results[index] = held;
}

const NO_HUB: SendResult = {
  status: 'retry',
  reason: 'the route names no event hub, and the sink has no default one (hub)',
};

/**
 * Sends as many of the events as one message holds. An event that is too large alone is refused here, and never sent.
 * @returns the result of the first `count` events
 */
async function sendMessage(
  { producer, signal }: Job,
  key: string | null,
  entries: readonly Entry[],
): Promise<{ readonly count: number; readonly result: SendResult }> {
  const messages = entries.map(({ message }) => message);
  let batch: Batch;
  try {
    batch = await producer.pack(key, messages);
  } catch (error) {
    return { count: entries.length, result: troubleWith(producer.place, toFailure(error)) };
  }
  const { count } = batch;
  if (count === 0) return { count: 1, result: tooLarge(batch.maxSizeInBytes) };
  try {
    await producer.send(batch, signal);
    return { count, result: DELIVERED };
  } catch (error) {
    return { count, result: resultOf(producer.place, toFailure(error), count) };
  }
}

function tooLarge(limit: number): SendResult {
  const reason = `with its properties it is above the ${limit} bytes that the event hub takes`;
  return { status: 'refused', code: 'too_large', reason };
}
