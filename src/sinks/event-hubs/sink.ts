import type { EventData, EventDataBatch } from '@azure/event-hubs';
import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { orAborted, unlessAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { ABORTED, resultOf, troubleWith } from '../failure.ts';
import type { EventHubsOptions } from './config.ts';
import { toFailure } from './failure.ts';
import { partitionKeyOf, toMessage } from './message.ts';
import { Producer } from './producer.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: EventHubsOptions, context: SinkContext): Sink {
  return new EventHubsSink(options, context);
}

/** Messages of one `send` that wait for their confirmation at the same time; a link's credit is a few hundred. */
const LANES = 32;
const IN_FLIGHT = 4;

/** A delivery, and where its result goes. */
type Indexed = readonly [index: number, delivery: Delivery];

interface Entry {
  readonly index: number;
  readonly message: EventData;
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
  readonly #running = new Set<Promise<void>>();
  readonly #retiring = new Set<Promise<void>>();

  constructor(options: EventHubsOptions, context: SinkContext) {
    this.#options = options;
    this.#context = context;
    this.limits = {
      batchCount: options.batch.count,
      batchBytes: options.batch.bytes,
      // What fits is known only after compression; `send` finds out before anything is sent.
      eventBytes: options.compression === 'never' ? options.maxEventBytes : Number.POSITIVE_INFINITY,
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
    const opened = producer.open().then(
      () => null,
      (error: unknown) => `${producer.place}: ${toFailure(error).reason}`,
    );
    const trouble = await unlessAborted(opened, signal, 'stopped before the connection was open');
    if (trouble !== null) throw new Error(trouble);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const results = Array.from(batch, () => ABORTED);
    const hub = batch[0]?.destination ?? this.#options.hub;
    if (hub === null) return batch.map(() => NO_HUB);
    if (signal.aborted) return results;
    // A signal of its own: the SDK listens once a message, and the dispatcher's signal is shared by every send.
    const stop = new AbortController();
    const producer = this.#producer(hub);
    const work = this.#send({ producer, batch, results, signal: stop.signal, trouble: null });
    const settled = work.catch(() => undefined).finally(() => this.#running.delete(settled));
    this.#running.add(settled);
    await unlessAborted(work, signal, undefined);
    if (signal.aborted) stop.abort();
    // A copy: what is answered must not change when a confirmation comes in after all.
    return [...results];
  }

  /** Waits for what is on the way, then closes every connection. */
  async close(signal: AbortSignal): Promise<void> {
    await orAborted(Promise.all(this.#running), signal);
    for (const producer of this.#producers.values()) this.#retire(producer);
    this.#producers.clear();
    await orAborted(Promise.all(this.#retiring), signal);
  }

  async #send(job: Job): Promise<void> {
    const groups = Map.groupBy(job.batch.entries(), ([, { event }]) => partitionKeyOf(event)).entries();
    const lanes = Array.from({ length: LANES }, async () => {
      for (const [key, group] of groups) await this.#sendGroup(job, key, group);
    });
    await Promise.all(lanes);
    if (job.producer.worn) this.#replace(job.producer);
  }

  /** Sends the events of one key one message after another; nothing of them follows what has to be sent again. */
  async #sendGroup(job: Job, key: string | null, group: readonly Indexed[]): Promise<void> {
    const { results, signal } = job;
    if (job.trouble !== null) {
      for (const [index] of group) results[index] = job.trouble;
      return;
    }
    const { compression } = this.#options;
    const entries = group.map(async ([index, { event }]) => ({
      index,
      message: await toMessage(event, compression),
    }));
    for (let left: readonly Entry[] = await Promise.all(entries); left.length > 0 && !signal.aborted;) {
      const { sent, result, ...rest } = await sendMessage(job, key, left);
      for (const { index } of sent) results[index] = result;
      left = rest.left;
      const held = result.status === 'retry' || (result.status === 'refused' && result.batch === true);
      if (!held) continue;
      if (result.status === 'retry') job.trouble ??= result;
      for (const { index } of left) results[index] = { status: 'retry', reason: result.reason };
      return;
    }
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

/** Sends as many of the events as one message holds. */
async function sendMessage(job: Job, key: string | null, entries: readonly Entry[]): Promise<Sent> {
  const { producer, signal } = job;
  let batch: EventDataBatch;
  try {
    batch = await producer.createBatch(key, signal);
  } catch (error) {
    return { sent: entries, result: troubleWith(producer.place, toFailure(error)), left: [] };
  }
  const { added: sent, left } = fill(batch, entries, job.results);
  if (sent.length === 0) return { sent, result: DELIVERED, left };
  try {
    await producer.send(batch, signal);
    return { sent, result: DELIVERED, left };
  } catch (error) {
    return { sent, result: resultOf(producer.place, toFailure(error), sent.length), left };
  }
}

/** Adds messages while they fit. One that does not fit alone is refused here, and never sent. */
function fill(
  batch: EventDataBatch,
  entries: readonly Entry[],
  results: SendResult[],
): { added: Entry[]; left: readonly Entry[] } {
  const added: Entry[] = [];
  for (const [at, entry] of entries.entries()) {
    if (batch.tryAdd(entry.message)) added.push(entry);
    else if (batch.count > 0) return { added, left: entries.slice(at) };
    else results[entry.index] = tooLarge(batch.maxSizeInBytes);
  }
  return { added, left: [] };
}

function tooLarge(limit: number): SendResult {
  const reason = `with its properties it is above the ${limit} bytes that the event hub takes`;
  return { status: 'refused', code: 'too_large', reason };
}
