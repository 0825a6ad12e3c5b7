import { MillraceError } from '../../core/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import { BATCH_BYTES, RECORD_BYTES, type Message } from '../../vendors/kafka/message.ts';
import { partitionOf } from '../../vendors/kafka/partition.ts';
import { countInBatch, encodeRecord, type EncodedRecord } from '../../vendors/kafka/record-batch.ts';
import { Writer, type WriterOptions, type Written } from '../../vendors/kafka/writer.ts';

export interface AppenderOptions extends Omit<WriterOptions, 'idempotent'> {
  /** Of a batch of several records. */
  readonly maxBytes: number;
}

/** A record that is not written yet. */
interface PendingRecord {
  readonly record: EncodedRecord;
  readonly written: PromiseWithResolvers<void>;
}

/** Bytes of `maxEventBytes` that the record of a received event leaves free: for the reason, if it becomes a dead letter. */
export const ROOM = 16 * 1024;
/** Bytes that may wait for a write: with more, the answers would come too late for their senders. */
const MOST_PENDING = 64 * 1024 * 1024;
/** Milliseconds after which the number of partitions is asked again, while there is something to write. */
const ASK_EVERY = 1000;

/**
 * Appends records to a topic: those that come during a write go into the next one, a batch for each partition. A record is
 * appended once all in-sync replicas have it.
 */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #writer: Writer;
  readonly #queues = new Map<number, PendingRecord[]>();
  #bytes = 0;
  /** Partitions of the topic; 0 before the first answer. */
  #count = 0;
  #askedAt = 0;
  #running: Promise<void> | null = null;
  readonly #abort = new AbortController();

  constructor(options: AppenderOptions) {
    this.#options = options;
    this.#writer = new Writer({ ...options, idempotent: true });
  }

  get topic(): string {
    return this.#options.topic;
  }

  /** How many partitions the topic has. @throws Error when it does not exist, or no broker answers */
  partitions(): Promise<number> {
    return this.#writer.partitions();
  }

  /**
   * @param to a key, whose records keep their order, or a partition
   * @param room bytes that its batch must have left. Null leaves it to the topic: an event that was accepted must not be
   * refused because a setting has changed.
   * @throws MillraceError body_too_large, backlog_full, or not_confirmed: then it may have been written
   */
  append(to: Buffer | number, message: Message, room: number | null = null): Promise<void> {
    const { topic, maxBytes } = this.#options;
    const record = encodeRecord(message);
    if (room !== null && bytesOf(record) + BATCH_BYTES + room > maxBytes) {
      const detail = `with its headers it takes ${bytesOf(record)} bytes; journal.maxEventBytes less ${room} is the most`;
      return Promise.reject(new MillraceError('body_too_large', detail));
    }
    if (this.#bytes > MOST_PENDING) {
      const detail = `topic ${topic}: ${this.#bytes} bytes wait for the brokers`;
      return Promise.reject(new MillraceError('backlog_full', detail));
    }
    if (typeof to === 'number') return this.#queue(to, record);
    if (this.#count > 0) return this.#queue(partitionOf(to, this.#count), record);
    return this.#ask().then((count) => this.#queue(partitionOf(to, count), record));
  }

  #queue(partition: number, record: EncodedRecord): Promise<void> {
    const written = Promise.withResolvers<void>();
    getOrMake(this.#queues, partition, () => []).push({ record, written });
    this.#bytes += record.length;
    this.#running ??= this.#run();
    return written.promise;
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#running;
  }

  /** Asks how many partitions there are. Not for each event: it takes as long as encoding it. */
  async #ask(): Promise<number> {
    try {
      this.#askedAt = performance.now();
      return (this.#count = await this.#writer.partitions());
    } catch (error) {
      throw this.#unconfirmed(toFailure(error).reason);
    }
  }

  async #run(): Promise<void> {
    // What is appended in the same turn goes with it.
    await Promise.resolve();
    while (this.#queues.size > 0) {
      const batches = new Map<number, PendingRecord[]>();
      for (const [partition, queue] of this.#queues) {
        batches.set(partition, queue.splice(0, countInBatch(queue, this.#options.maxBytes)));
        if (queue.length === 0) this.#queues.delete(partition);
      }
      await this.#write(batches);
      if (performance.now() - this.#askedAt > ASK_EVERY) void this.#ask().catch(() => undefined);
    }
    this.#running = null;
  }

  async #write(batches: ReadonlyMap<number, readonly PendingRecord[]>): Promise<void> {
    const records = [...batches].map(
      ([partition, batch]) => [partition, batch.map(({ record }) => record)] as const,
    );
    const results = await this.#writer
      .write(new Map(records), this.#abort.signal)
      .catch(
        (error: unknown) =>
          new Map<number, Written>(records.map(([partition]) => [partition, toFailure(error)])),
      );
    for (const [partition, batch] of batches) {
      const failure = results.get(partition) ?? null;
      // The topic accepts less than the config says: one by one, so that only records that are too large are refused.
      if (failure?.kind === 'too-large' && batch.length > 1)
        for (const one of batch) await this.#write(new Map([[partition, [one]]]));
      else for (const each of batch) this.#settle(each, failure);
    }
  }

  #settle({ record, written }: PendingRecord, failure: Written): void {
    this.#bytes -= record.length;
    if (failure === null) written.resolve();
    else if (failure.kind === 'too-large')
      written.reject(new MillraceError('body_too_large', `topic ${this.#options.topic}: ${failure.reason}`));
    else written.reject(this.#unconfirmed(failure.reason));
  }

  #unconfirmed(reason: string): MillraceError {
    return new MillraceError('not_confirmed', `topic ${this.#options.topic}: ${reason}`);
  }
}

function bytesOf(record: EncodedRecord): number {
  return RECORD_BYTES + record.length;
}
