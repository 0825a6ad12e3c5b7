import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { orAborted } from '../../lib/abort.ts';
import { mapAtMost } from '../../lib/map-at-most.ts';
import { ABORTED, resultOf, tooLarge, troubleWith } from '../../vendors/failure.ts';
import { toMessages } from '../../vendors/message.ts';
import { codeOf, PERMISSION_DENIED, toFailure } from '../../vendors/pubsub/failure.ts';
import { badTopic, eventBytesOf, NO_TOPIC, Sends } from '../broker.ts';
import type { PubSubOptions } from './config.ts';
import { requestBytes, toMessage, type Message } from './message.ts';
import { Publisher } from './publisher.ts';
import { isTopic, topicPath } from './topic.ts';

export function createSink(options: PubSubOptions, context: SinkContext): Sink {
  return new PubSubSink(options, context);
}

/** Requests of one `send` in flight at the same time, with ordering. */
const LANES = 64;

/** Bytes above what topic, ordering key and attributes take: there are few, and each is cut at 1 KiB. */
const ENVELOPE_MOST = 64 * 1024;

/** One `send`. */
interface Job {
  readonly topic: string;
  readonly messages: readonly Message[];
  readonly results: SendResult[];
  readonly signal: AbortSignal;
}

/**
 * Publishes events to Pub/Sub. Without ordering a batch is one request; with ordering it is one for each user, because a
 * request takes one ordering key only.
 *
 * Modes: new → open (by `open`) → closed.
 */
export class PubSubSink implements Sink {
  readonly limits;
  readonly #options: PubSubOptions;
  readonly #publisher: Publisher;
  readonly #sends = new Sends();

  constructor(options: PubSubOptions, { name, log }: SinkContext) {
    this.#options = options;
    this.#publisher = new Publisher(options, () =>
      log.warn({ sink: name }, 'replacing the connection to Pub/Sub'),
    );
    this.limits = {
      // 500 messages with all attributes as long as they can be (7.5 KB each) still leave 6 MB of a request's 10 MB.
      batchCount: 500,
      batchBytes: 6_000_000,
      eventBytes: eventBytesOf(options),
      inFlight: 8,
      order: options.ordering ? 'user' : 'none',
      batchBy: 'destination',
      // A request with one message costs as much as one with many.
      linger: 10,
    } as const;
  }

  /**
   * Connects, and checks that the default topic exists. Without the right to see it the topic counts as there: publishing does not
   * need that right.
   */
  async open(signal: AbortSignal): Promise<void> {
    const { project, topic } = this.#options;
    try {
      if (topic === null) await this.#publisher.connect(signal);
      else await this.#publisher.seeTopic(topicPath(project, topic), signal);
    } catch (error) {
      if (codeOf(error) === PERMISSION_DENIED) return;
      throw new Error(troubleWith(`topic ${topic ?? 'none'}`, toFailure(error)).reason, { cause: error });
    }
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const name = batch[0]?.destination ?? this.#options.topic;
    if (name === null) return batch.map(() => NO_TOPIC);
    if (!isTopic(name)) return batch.map(() => badTopic(name));
    const topic = topicPath(this.#options.project, name);
    return this.#sends.run(batch, signal, (results) => this.#send(topic, batch, results, signal));
  }

  /** Waits for all sends in flight, then closes the connection. */
  async close(signal: AbortSignal): Promise<void> {
    await this.#sends.ended(signal);
    await orAborted(this.#publisher.close(), signal);
  }

  async #send(
    topic: string,
    batch: readonly Delivery[],
    results: SendResult[],
    signal: AbortSignal,
  ): Promise<void> {
    const { maxEventBytes, ordering, compression } = this.#options;
    const messages = await toMessages(batch, compression, (event, body, isZipped) =>
      toMessage(event, body, isZipped, ordering),
    );
    const valid: number[] = [];
    for (const [index, message] of messages.entries()) {
      // Counting the bytes of every attribute is slow, and nearly all events are far from the limit.
      const isNear = message.data.length + ENVELOPE_MOST > maxEventBytes;
      const bytes = isNear ? requestBytes(topic, message) : 0;
      if (bytes <= maxEventBytes) valid.push(index);
      else results[index] = tooLarge('attributes', bytes, maxEventBytes);
    }
    const job: Job = { topic, messages, results, signal };
    if (!ordering) return this.#publish(job, valid);
    const groups = Map.groupBy(valid, (index) => messages[index]?.orderingKey);
    await mapAtMost(LANES, [...groups.values()], (group) => this.#publishInOrder(job, group));
  }

  /** One request; all of its events have the same result. */
  async #publish(job: Job, indexes: readonly number[]): Promise<void> {
    const result = await this.#request(job, indexes);
    for (const index of indexes) job.results[index] = result;
  }

  async #request({ topic, messages, signal }: Job, indexes: readonly number[]): Promise<SendResult> {
    if (indexes.length === 0 || signal.aborted) return ABORTED;
    const group = indexes.flatMap((index) => messages[index] ?? []);
    try {
      await this.#publisher.publish(topic, group, signal);
      return DELIVERED;
    } catch (error) {
      return resultOf(`topic ${topic}`, toFailure(error), group.length);
    }
  }

  /**
   * Publishes the events of one user. When they are refused together they are published one by one here: the dispatcher would
   * send the other users' events again too. An event has its result only once it is final.
   */
  async #publishInOrder(job: Job, group: readonly number[]): Promise<void> {
    const together = await this.#request(job, group);
    const isSplit = together.status === 'refused' && together.batch === true;
    // Nothing of a user may follow what has to be sent again.
    let decided = isSplit ? null : together;
    for (const index of group) {
      const result: SendResult = decided ?? (await this.#request(job, [index]));
      job.results[index] = result;
      if (result.status === 'retry') decided = result;
    }
  }
}
