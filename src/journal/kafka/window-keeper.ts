import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { Serial } from '../../lib/serial.ts';
import type { Message } from '../../vendors/kafka/message.ts';
import { GroupConsumer, type ConsumerOptions } from './group-consumer.ts';
import type { IdAt } from './id-table.ts';
import type { RecordedEvent } from './record.ts';
import { CHUNK, chunkKey, encodeChunk, type JudgedRecord } from './window.ts';

export interface KeeperOptions extends Omit<ConsumerOptions, 'onRecord' | 'handOver'> {
  /** Writes to the window's topic, to the partition of the same number. */
  readonly append: (partition: number, message: Message) => Promise<void>;
  readonly quarantineReused: (recorded: RecordedEvent) => Promise<void>;
}

const PAUSE = 1000;

type Task = () => Promise<void>;

/** The ids of the first records of a chunk. */
interface Chunk {
  readonly first: number;
  /** The offset that must come next. */
  next: number;
  readonly ids: IdAt[];
}

/**
 * Does once for each record, by the owner of its partition, what is to be done whatever sinks there are: it writes the ids
 * of whole chunks to the window's topic, and quarantines events with a known id and other bytes. Doing it twice has the same
 * result.
 */
export class WindowKeeper {
  readonly #options: KeeperOptions;
  readonly #consumer: GroupConsumer;
  readonly #chunks = new Map<number, Chunk>();
  /** Of the records since the last call of the subscriber. */
  readonly #tasks: Task[] = [];
  readonly #serial = new Serial();
  readonly #abort = new AbortController();

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#consumer = new GroupConsumer({
      ...options,
      onRecord: (record) => this.#see(record),
      handOver: () => this.#serial.run(() => Promise.resolve()),
    });
    this.#consumer.subscribe((lastSeq) => {
      const tasks = this.#tasks.splice(0);
      void this.#serial.run(() => this.#work(tasks, lastSeq));
    });
  }

  async start(): Promise<void> {
    await this.#consumer.openCursor();
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.#abort.abort();
    await this.#consumer.stop(signal);
  }

  #see({ partition, offset, recorded, ids, verdict }: JudgedRecord): void {
    const { topic, log, quarantineReused } = this.#options;
    if (recorded === null)
      log.warn({ topic, partition, offset }, 'a record that no millrace has written is skipped');
    else if (verdict === 'reused') this.#tasks.push(() => quarantineReused(recorded));
    const first = offset - (offset % CHUNK);
    if (offset === first) this.#chunks.set(partition, { first, next: first, ids: [] });
    const chunk = this.#chunks.get(partition);
    if (chunk === undefined || (chunk.first === first && offset < chunk.next)) return;
    // A chunk with a gap is not written: consumers read the log itself there.
    if (chunk.first !== first || offset !== chunk.next) return void this.#chunks.delete(partition);
    chunk.next = offset + 1;
    chunk.ids.push(...ids);
    if (chunk.next !== first + CHUNK) return;
    const value = encodeChunk(first, chunk.ids);
    const message = { key: chunkKey(partition, first), value, headers: [] };
    this.#tasks.push(() => this.#appendChunk(partition, message));
  }

  /** A chunk that the topic refuses is not written: consumers read the log itself there. */
  async #appendChunk(partition: number, message: Message): Promise<void> {
    const { append, windowTopic: topic, log } = this.#options;
    await append(partition, message).catch((error: unknown) => {
      if (!(error instanceof MillraceError) || error.code !== 'body_too_large') throw error;
      log.warn({ topic, partition, error: messageOf(error) }, 'the ids of a chunk are not written');
    });
  }

  /** Moves the cursor once the tasks of the records up to there are done. Never rejects. */
  async #work(tasks: readonly Task[], upTo: number): Promise<void> {
    for (const task of tasks) await this.#try(task);
    if (!this.#abort.signal.aborted) this.#consumer.moveCursor(this.#options.name, upTo);
  }

  async #try(task: Task): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted)
      try {
        return await task();
      } catch (error) {
        this.#options.log.warn({ error: messageOf(error) }, 'the window of ids could not be written');
        await wait(PAUSE, undefined, { signal }).catch(() => undefined);
      }
  }
}
