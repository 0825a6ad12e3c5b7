import { MillraceError } from '../../core/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Client } from '../../vendors/kafka/client.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import { BATCH_BYTES, RECORD_BYTES, type Message } from '../../vendors/kafka/message.ts';
import { partitionOf } from '../../vendors/kafka/partition.ts';
import { encodeRecord, type EncodedRecord } from '../../vendors/kafka/record-batch.ts';
import { Writer, type Written } from '../../vendors/kafka/writer.ts';

export interface AppenderOptions {
  readonly topic: string;
  readonly client: () => Promise<Client>;
  readonly codec: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  /** Milliseconds for one write. */
  readonly timeout: number;
  /** Of a batch of several records. */
  readonly maxBytes: number;
}

/** A record on its way, and whoever waits for it. */
interface Waiting {
  readonly record: EncodedRecord;
  readonly written: PromiseWithResolvers<void>;
}

/**
 * Bytes of `maxEventBytes` that are kept free in the record of what comes in: whatever becomes of it, a dead letter say, its
 * record has room for the reason.
 */
export const ROOM = 16 * 1024;
/** Bytes that may wait for a write: beyond them nobody would wait long enough for the answer. */
const MOST_WAITING = 64 * 1024 * 1024;
/** Milliseconds between two looks at the number of partitions, while there is something to write. */
const LOOK_EVERY = 1000;

/**
 * Appends records to a topic: what comes while a write is under way goes into the next one, a batch a partition. A record
 * is appended once all in-sync replicas have it.
 */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #writer: Writer;
  #queues = new Map<number, Waiting[]>();
  #bytes = 0;
  /** Partitions of the topic, as they were at the last write; 0: not looked yet. */
  #count = 0;
  #lookedAt = 0;
  #running: Promise<void> | null = null;
  readonly #abort = new AbortController();

  constructor(options: AppenderOptions) {
    this.#options = options;
    this.#writer = new Writer({ ...options, idempotent: true });
  }

  get topic(): string {
    return this.#options.topic;
  }

  /** Throws when the topic does not exist, or no broker answers. */
  async partitions(): Promise<number> {
    return this.#writer.partitions();
  }

  /**
   * @param place what says the partition: records of one place keep their order; or a partition
   * @param room bytes that its batch must have left. Without it the topic alone says what is too large: what is an event
   * already must not be refused for a setting that has changed since.
   * @throws MillraceError body_too_large, backlog_full, not_confirmed: then it may be in the topic or not
   */
  append(place: Buffer | number, message: Message, room: number | null = null): Promise<void> {
    const { topic, maxBytes } = this.#options;
    const record = encodeRecord(message);
    if (room !== null && bytesOf(record) + BATCH_BYTES + room > maxBytes) {
      const detail = `with its headers it takes ${bytesOf(record)} bytes; journal.maxEventBytes less ${room} is the most`;
      return Promise.reject(new MillraceError('body_too_large', detail));
    }
    if (this.#bytes > MOST_WAITING) {
      const detail = `topic ${topic}: ${this.#bytes} bytes wait for the brokers`;
      return Promise.reject(new MillraceError('backlog_full', detail));
    }
    if (typeof place === 'number') return this.#queue(place, record);
    if (this.#count > 0) return this.#queue(partitionOf(place, this.#count), record);
    return this.#look().then((count) => this.#queue(partitionOf(place, count), record));
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

  /** Looks how many partitions there are: for each event it would cost as much as encoding it. */
  async #look(): Promise<number> {
    try {
      this.#lookedAt = performance.now();
      return (this.#count = await this.#writer.partitions());
    } catch (error) {
      throw this.#unconfirmed(toFailure(error).reason);
    }
  }

  async #run(): Promise<void> {
    // What came in with it in the same turn goes with it.
    await Promise.resolve();
    while (this.#queues.size > 0) {
      const batches = new Map<number, Waiting[]>();
      for (const [partition, queue] of this.#queues) {
        const count = fitting(queue, this.#options.maxBytes);
        batches.set(partition, queue.slice(0, count));
        if (count === queue.length) this.#queues.delete(partition);
        else this.#queues.set(partition, queue.slice(count));
      }
      await this.#write(batches);
      if (performance.now() - this.#lookedAt > LOOK_EVERY) void this.#look().catch(() => undefined);
    }
    this.#running = null;
  }

  async #write(batches: ReadonlyMap<number, readonly Waiting[]>): Promise<void> {
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
      // The topic takes less than the config says: each for itself, so that only what is too large is refused.
      if (failure?.kind === 'too-large' && batch.length > 1)
        for (const one of batch) await this.#write(new Map([[partition, [one]]]));
      else for (const each of batch) this.#settle(each, failure);
    }
  }

  #settle({ record, written }: Waiting, failure: Written): void {
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

/** How many fit into one batch: at least one. */
function fitting(queue: readonly Waiting[], most: number): number {
  let bytes = BATCH_BYTES;
  const end = queue.findIndex((each) => (bytes += bytesOf(each.record)) > most);
  return end === -1 ? queue.length : Math.max(1, end);
}
