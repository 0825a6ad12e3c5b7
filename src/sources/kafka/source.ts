import type { Consumer, ConsumerOptions, Message, MessagesStream } from '@platformatic/kafka';
import type { IncomingMessage } from '../../core/ingest.ts';
import type { Deliver, Source, SourceContext } from '../../core/source.ts';
import { orAborted, untilAborted, within } from '../../lib/abort.ts';
import { clientOptions, quiet } from '../../vendors/kafka/connection.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import type { KafkaSourceOptions } from './config.ts';
import { encodingIn } from '../take.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSource(options: KafkaSourceOptions, context: SourceContext): Source {
  return new KafkaSource(options, context);
}

/** Most messages in a batch. */
const BATCH = 256;
/** With fewer messages here, more are fetched: few, because each can be large. */
const LOW_WATER = 64;
/** Milliseconds that a broker waits for a message before it answers that there is none. */
const WAIT = 500;
/** Heartbeats in a session. */
const HEARTBEATS = 6;

/**
 * Reads its share of a topic's partitions, each in its order, and commits an offset when everything before it was accepted.
 * When partitions change hands, their next consumer reads again what was not committed.
 *
 * Modes: new → open (by `open`) → reading (by `run`) → closed. An error while reading ends `run`; after another `open`,
 * reading continues behind the committed offsets.
 */
export class KafkaSource implements Source {
  readonly #options: KafkaSourceOptions;
  readonly #context: SourceContext;
  #consumer: Consumer | null = null;

  constructor(options: KafkaSourceOptions, context: SourceContext) {
    this.#options = options;
    this.#context = context;
  }

  /** Throws when no broker answers, or when the topic does not exist. */
  async open(signal: AbortSignal): Promise<void> {
    await this.close(signal);
    const { connection, topic, group, session, timeout } = this.#options;
    const { Consumer: Client } = await import('@platformatic/kafka');
    const options: ConsumerOptions<Buffer, Buffer, Buffer, Buffer> = {
      ...clientOptions(connection, timeout),
      // A join is answered when every other member has joined, or counts as gone.
      requestTimeout: session + timeout,
      groupId: group,
      sessionTimeout: session,
      rebalanceTimeout: session,
      heartbeatInterval: Math.floor(session / HEARTBEATS),
      heartbeatStallTimeout: session,
      autocommit: false,
    };
    const consumer = new Client(options);
    quiet(consumer);
    // `run` listens for errors; those before it are not needed.
    consumer.on('error', () => undefined);
    this.#consumer = consumer;
    try {
      await within(consumer.metadata({ topics: [topic] }), timeout, signal, new Error('no answer in time'));
    } catch (error) {
      throw this.#explained(error);
    }
  }

  async run(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const consumer = this.#consumer;
    if (consumer === null) throw new Error('the source is not open');
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => undefined);
    const fail = (error: unknown): void => ended.reject(this.#explained(error));
    const stalled = (): void => fail(new Error('no heartbeat has been answered'));
    consumer.on('error', fail);
    consumer.on('consumer:heartbeat:stalled', stalled);
    let stream: MessagesStream<Buffer, Buffer, Buffer, Buffer> | null = null;
    try {
      const stop = Promise.race([ended.promise, untilAborted(signal).then(() => null)]);
      const subscribed = this.#subscribe(consumer, fail).catch((error: unknown) => {
        throw this.#explained(error);
      });
      stream = await Promise.race([subscribed, stop]);
      if (stream === null) return;
      for (;;) {
        const batch = await Promise.race([next(stream), stop]);
        if (batch === null) return;
        const now = this.#context.clock.now();
        await deliver(batch.map((message) => toIncoming(message, now)));
        await this.#commit(consumer, batch);
      }
    } finally {
      consumer.off('error', fail);
      consumer.off('consumer:heartbeat:stalled', stalled);
      stream?.destroy();
    }
  }

  /** Leaves the group, so that other members do not wait for the end of the session. */
  async close(signal: AbortSignal): Promise<void> {
    const consumer = this.#consumer;
    this.#consumer = null;
    if (consumer === null) return;
    const left = consumer.close(true).catch(() => consumer.connections.close().catch(() => undefined));
    await orAborted(left, AbortSignal.any([signal, AbortSignal.timeout(this.#options.timeout)]));
  }

  async #subscribe(
    consumer: Consumer,
    fail: (error: unknown) => void,
  ): Promise<MessagesStream<Buffer, Buffer, Buffer, Buffer>> {
    const { topic, start, fetchBytes } = this.#options;
    const stream = await consumer.consume({
      topics: [topic],
      mode: 'committed',
      fallbackMode: start,
      autocommit: false,
      maxBytes: fetchBytes,
      maxWaitTime: WAIT,
      highWaterMark: LOW_WATER,
    });
    quiet(stream);
    stream.on('error', fail);
    // Paused: a flowing stream would pass on messages during a delivery.
    stream.on('readable', () => undefined);
    return stream;
  }

  /** Commits the batch. Partitions that change hands at this moment are read again, which does no harm. */
  async #commit(consumer: Consumer, batch: readonly Message[]): Promise<void> {
    const { topic } = this.#options;
    const own = consumer.assignments?.find((each) => each.topic === topic)?.partitions ?? [];
    const last = new Map(batch.map((message) => [message.partition, message]));
    const offsets = [...last.values()]
      .filter(({ partition }) => own.includes(partition))
      .map(({ partition, offset, leaderEpoch }) => ({ topic, partition, offset: offset + 1n, leaderEpoch }));
    if (offsets.length === 0) return;
    try {
      await consumer.commit({ offsets });
    } catch (error) {
      const { findErrorBy } = await import('@platformatic/kafka');
      if (!(error instanceof Error) || findErrorBy(error, 'needsRejoin', true) === null)
        throw this.#explained(error);
      const { name, log } = this.#context;
      log.info({ source: name, topic }, 'partitions are changing hands; what was read last is read again');
    }
  }

  #explained(error: unknown): Error {
    return new Error(`topic ${this.#options.topic}: ${toFailure(error).reason}`, { cause: error });
  }
}

/** The next messages; waits for the first one. */
async function next(stream: MessagesStream<Buffer, Buffer, Buffer, Buffer>): Promise<Message[]> {
  const batch: Message[] = [];
  for (;;) {
    while (batch.length < BATCH) {
      const message = stream.read() as Message | null;
      if (message === null) break;
      batch.push(message);
    }
    if (batch.length > 0) return batch;
    if (stream.destroyed || stream.readableEnded) throw new Error('the connection to the brokers has ended');
    const { promise, resolve } = Promise.withResolvers<void>();
    stream.once('readable', resolve).once('close', resolve);
    await promise;
    stream.off('readable', resolve).off('close', resolve);
  }
}

/**
 * The record as it is in the topic: still compressed, with the headers from its publisher. A missing value is empty.
 * @param now milliseconds since the epoch, for a record without a time, or with one in the future
 */
export function toIncoming(
  { value, headerEntries, timestamp }: Pick<Message, 'value' | 'headerEntries' | 'timestamp'>,
  now: number,
): IncomingMessage {
  const properties = Object.fromEntries(
    headerEntries.map(([name, text]) => [String(name ?? ''), String(text ?? '')]),
  );
  return {
    body: value ?? Buffer.alloc(0),
    encoding: encodingIn(properties, 'content-encoding'),
    properties,
    receivedAt: timestamp > 0n && timestamp <= BigInt(now) ? Number(timestamp) : now,
  };
}
