import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { onAbort, orAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { eventBytesOf, opened, Sends } from '../broker.ts';
import { heldBy, resultOf, troubleWith } from '../../vendors/failure.ts';
import { toMessages } from '../../vendors/message.ts';
import type { Batch } from '../../vendors/event-hubs/batch.ts';
import type { EventHubsOptions } from './config.ts';
import { toFailure } from '../../vendors/event-hubs/failure.ts';
import { partitionKeyOf, toMessage, type Message } from '../../vendors/event-hubs/message.ts';
import { Producer } from '../../vendors/event-hubs/producer.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: EventHubsOptions, context: SinkContext): Sink {
  return new EventHubsSink(options, context);
}

/** Messages of one `send` that wait for their confirmation at the same time; a link's credit is a few hundred. */
const LANES = 32;
const IN_FLIGHT = 4;

/** A message, and where its result goes. */
interface Entry {
  readonly index: number;
  readonly message: Message;
}

/** One `send`. */
interface Job {
  readonly producer: Producer;
  readonly batch: readonly Delivery[];
  readonly results: SendResult[];
  readonly signal: AbortSignal;
  /** Once the hub is in trouble, nothing more is tried: each further message would wait for its time-out. */
  trouble: SendResult | null;
}

/**
 * Sends events to Event Hubs, in as few messages as partition keys allow, many messages at a time.
 *
 * Modes: new → open (by `open`, which proves the default hub) → closed. Producers are opened one a hub, on first use,
 * and replaced when they fail again and again; that changes no mode.
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

  /** Opens a link to the default hub. Throws when it cannot be had; with no default hub it does nothing. */
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
      // A signal of its own: the SDK listens once a message, and the dispatcher's signal is shared by every send.
      const stop = new AbortController();
      const forget = onAbort(signal, () => stop.abort());
      const job = { producer: this.#producer(hub), batch, results, signal: stop.signal, trouble: null };
      await this.#send(job).finally(forget);
    });
  }

  /** Waits for what is on the way, then closes every connection. */
  async close(signal: AbortSignal): Promise<void> {
    await this.#sends.ended(signal);
    for (const producer of this.#producers.values()) this.#retire(producer);
    this.#producers.clear();
    await orAborted(Promise.all(this.#retiring), signal);
  }

  async #send(job: Job): Promise<void> {
    const messages = await toMessages(job.batch, this.#options.compression, toMessage);
    const groups = new Map<string | null, Entry[]>();
    for (const [index, message] of messages.entries()) {
      const event = job.batch[index]?.event;
      if (event !== undefined) getOrMake(groups, partitionKeyOf(event), () => []).push({ index, message });
    }
    const waiting = groups.entries();
    const lanes = Array.from({ length: LANES }, async () => {
      for (const [key, group] of waiting) await sendGroup(job, key, group);
    });
    await Promise.all(lanes);
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
  if (job.trouble !== null) {
    for (const { index } of group) results[index] = job.trouble;
    return;
  }
  for (let left = group; left.length > 0 && !signal.aborted;) {
    const { sent, result, ...rest } = await sendMessage(job, key, left);
    for (const { index } of sent) results[index] = result;
    left = rest.left;
    const held = heldBy(result);
    if (held === null) continue;
    if (result.status === 'retry') job.trouble ??= result;
    for (const { index } of left) results[index] = held;
    return;
  }
}

const NO_HUB: SendResult = {
  status: 'retry',
  reason: 'the route names no event hub, and the sink has no default one (hub)',
};

interface Sent {
  /** What the message held, all with the same result. */
  readonly sent: readonly Entry[];
  readonly result: SendResult;
  /** What is still to be sent after it. */
  readonly left: readonly Entry[];
}

/** Sends as many of the events as one message holds. One that does not fit alone is refused here, and never sent. */
async function sendMessage(
  { producer, signal }: Job,
  key: string | null,
  entries: readonly Entry[],
): Promise<Sent> {
  let batch: Batch;
  try {
    batch = await producer.pack(
      key,
      entries.map(({ message }) => message),
    );
  } catch (error) {
    return { sent: entries, result: troubleWith(producer.place, toFailure(error)), left: [] };
  }
  const [first] = entries;
  if (batch.count === 0 && first !== undefined)
    return { sent: [first], result: tooLarge(batch.maxSizeInBytes), left: entries.slice(1) };
  const [sent, left] = [entries.slice(0, batch.count), entries.slice(batch.count)];
  try {
    await producer.send(batch, signal);
    return { sent, result: DELIVERED, left };
  } catch (error) {
    return { sent, result: resultOf(producer.place, toFailure(error), sent.length), left };
  }
}

function tooLarge(limit: number): SendResult {
  const reason = `with its properties it is above the ${limit} bytes that the event hub takes`;
  return { status: 'refused', code: 'too_large', reason };
}
