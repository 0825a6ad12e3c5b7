import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { orAborted } from '../../lib/abort.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { heldBy, resultOf, tooLarge, troubleWith } from '../../vendors/failure.ts';
import { Client } from '../../vendors/kafka/client.ts';
import { isTopic } from '../../vendors/kafka/connection.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import { BATCH_BYTES, RECORD_BYTES, toMessage } from '../../vendors/kafka/message.ts';
import { partitionOf } from '../../vendors/kafka/partition.ts';
import { countInBatch, encodeRecord, type EncodedRecord } from '../../vendors/kafka/record-batch.ts';
import { Writer } from '../../vendors/kafka/writer.ts';
import { toMessages } from '../../vendors/message.ts';
import { badTopic, eventBytesOf, NO_TOPIC, opened, Sends } from '../broker.ts';
import type { KafkaOptions } from './config.ts';

export function createSink(options: KafkaOptions, context: SinkContext): Sink {
  return new KafkaSink(options, context);
}

const IN_FLIGHT = 4;

/** A record, and the index of its delivery in the batch. */
interface Entry {
  readonly index: number;
  readonly record: EncodedRecord;
}

/** One `send`. */
interface Job {
  readonly topic: string;
  readonly results: SendResult[];
  readonly signal: AbortSignal;
}

/**
 * Writes events to Kafka: a batch for each partition, confirmed by all in-sync replicas.
 *
 * Modes: new → open (by `open`, which proves the default topic) → closed. A topic gets its writer on first use.
 */
export class KafkaSink implements Sink {
  readonly limits;
  readonly #options: KafkaOptions;
  readonly #writers = new Map<string, Writer>();
  readonly #sends = new Sends();
  readonly #client: Client;
  /** Grows with each send, so that messages without a key go to all partitions in turn. */
  #turn = 0;

  constructor(options: KafkaOptions, _context: SinkContext) {
    this.#options = options;
    this.#client = new Client(options.connection, options.timeout);
    this.limits = {
      batchCount: options.batch.count,
      batchBytes: options.batch.bytes,
      eventBytes: eventBytesOf(options),
      inFlight: IN_FLIGHT,
      order: 'user',
      batchBy: 'destination',
      linger: 5,
    } as const;
  }

  /** @throws Error when no broker answers, or the default topic does not exist */
  async open(signal: AbortSignal): Promise<void> {
    const { topic } = this.#options;
    const place = topic === null ? 'kafka' : placeOf(topic);
    const opening = topic === null ? this.#client.any() : this.#writer(topic).partitions();
    await opened(opening, signal, (error) => troubleWith(place, toFailure(error)).reason);
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    const topic = batch[0]?.destination ?? this.#options.topic;
    if (topic === null) return batch.map(() => NO_TOPIC);
    if (!isTopic(topic)) return batch.map(() => badTopic(topic));
    return this.#sends.run(batch, signal, (results) => this.#send(batch, { topic, results, signal }));
  }

  /** Waits for all sends in flight, then closes every connection. */
  async close(signal: AbortSignal): Promise<void> {
    await this.#sends.ended(signal);
    await orAborted(this.#client.close(), signal);
  }

  async #send(batch: readonly Delivery[], job: Job): Promise<void> {
    const { compression, maxEventBytes } = this.#options;
    const { topic, results } = job;
    const messages = await toMessages(batch, compression, toMessage);
    const writer = this.#writer(topic);
    let partitions: number;
    try {
      partitions = await writer.partitions();
    } catch (error) {
      return void results.fill(troubleWith(placeOf(topic), toFailure(error)));
    }
    const any = this.#turn++;
    const queues = new Map<number, Entry[]>();
    for (const [index, message] of messages.entries()) {
      const record = encodeRecord(message);
      const bytes = BATCH_BYTES + RECORD_BYTES + record.length;
      const partition = message.key === null ? any % partitions : partitionOf(message.key, partitions);
      if (bytes > maxEventBytes) results[index] = tooLarge('key and headers', bytes, maxEventBytes);
      else getOrMake(queues, partition, () => []).push({ index, record });
    }
    while (queues.size > 0 && !job.signal.aborted) await this.#round(writer, queues, job);
  }

  /** Sends the next batch of each partition; nothing of a partition follows what has to be sent again. */
  async #round(writer: Writer, queues: Map<number, Entry[]>, { topic, results, signal }: Job): Promise<void> {
    const batches = new Map<number, readonly Entry[]>();
    for (const [partition, queue] of queues)
      batches.set(partition, queue.splice(0, countInBatch(queue, this.#options.maxEventBytes)));
    const recordsOf = (entries: readonly Entry[]): EncodedRecord[] => entries.map(({ record }) => record);
    const records = Array.from(batches, ([partition, entries]) => [partition, recordsOf(entries)] as const);
    const written = await writer.write(new Map(records), signal);
    for (const [partition, entries] of batches) {
      const failure = written.get(partition) ?? null;
      const result = failure === null ? DELIVERED : resultOf(placeOf(topic), failure, entries.length);
      for (const { index } of entries) results[index] = result;
      const queue = queues.get(partition) ?? [];
      const held = heldBy(result);
      if (held !== null) for (const { index } of queue) results[index] = held;
      if (held !== null || queue.length === 0) queues.delete(partition);
    }
  }

  #writer(topic: string): Writer {
    const { idempotent, codec, timeout } = this.#options;
    const make = (): Writer => new Writer({ topic, client: this.#client, idempotent, codec, timeout });
    return getOrMake(this.#writers, topic, make);
  }
}

function placeOf(topic: string): string {
  return `topic ${topic}`;
}
