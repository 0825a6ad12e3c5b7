import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import type { Message } from '../../vendors/kafka/message.ts';
import type { Kept } from './record.ts';
import type { Seen } from './partition-fetcher.ts';
import { Share, type ShareOptions } from './group-consumer.ts';
import type { IdAt } from './id-table.ts';
import { CHUNK, chunkKey, encodeChunk } from './window.ts';

export interface KeeperOptions extends Pick<
  ShareOptions,
  'group' | 'topic' | 'windowTopic' | 'deadLetterTopic' | 'session' | 'window' | 'maxBytes' | 'connect'
> {
  /** Writes to the window's topic, to the partition of the same number. */
  readonly append: (partition: number, message: Message) => Promise<void>;
  readonly quarantineReused: (kept: Kept) => Promise<void>;
  readonly log: SinkLog;
}

const PAUSE = 1000;

/** Of a partition, the ids of a chunk that is not whole yet. */
interface Chunk {
  readonly first: number;
  /** The offset that comes next: with one left out it is not whole. */
  next: number;
  readonly ids: IdAt[];
}

/**
 * What has to be done once for each record, whatever sinks there are, by one who owns its partition: puts the ids of whole
 * chunks into the window's topic, and what came with a known id and other bytes into quarantine. Done twice it is the same.
 */
export class Keeper {
  readonly #options: KeeperOptions;
  readonly #share: Share;
  readonly #chunks = new Map<number, Chunk>();
  #tasks: (() => Promise<void>)[] = [];
  #working: Promise<void> | null = null;
  readonly #abort = new AbortController();

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#share = new Share({
      ...options,
      name: '_window',
      onRecord: (record) => this.#see(record),
      handOver: () => this.#working ?? Promise.resolve(),
      flushSink: () => undefined,
      onReceived: () => () => undefined,
      addDeadLetter: () => Promise.resolve(),
    });
    this.#share.subscribe(() => void (this.#working ??= this.#work()));
  }

  async start(): Promise<void> {
    await this.#share.openCursor();
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.#abort.abort();
    await this.#share.stop(signal);
  }

  #see({ partition, offset, kept, ids, verdict }: Seen): void {
    if (kept === null)
      this.#options.log.warn(
        { topic: this.#options.topic, partition, offset },
        'a record that no millrace has written is passed over',
      );
    else if (verdict === 'reused') this.#tasks.push(() => this.#options.quarantineReused(kept));
    const first = offset - (offset % CHUNK);
    let chunk = this.#chunks.get(partition);
    // One that was begun in its middle is left out: whoever needs it reads the log itself.
    if (chunk?.first !== first || offset > chunk.next) {
      chunk = undefined;
      if (offset === first) this.#chunks.set(partition, (chunk = { first, next: first, ids: [] }));
      else this.#chunks.delete(partition);
    }
    if (chunk === undefined || offset < chunk.next) return;
    chunk.next = offset + 1;
    chunk.ids.push(...ids);
    if (chunk.next !== first + CHUNK) return;
    const message: Message = {
      key: chunkKey(partition, first),
      value: encodeChunk(first, chunk.ids),
      headers: [],
    };
    this.#tasks.push(() => this.#appendChunk(partition, message));
  }

  /** One that the topic refuses is left out: whoever needs it reads the log itself. */
  async #appendChunk(partition: number, message: Message): Promise<void> {
    const { append, windowTopic: topic, log } = this.#options;
    await append(partition, message).catch((error: unknown) => {
      if (!(error instanceof MillraceError) || error.code !== 'body_too_large') throw error;
      log.warn({ topic, partition, error: messageOf(error) }, 'ids of a chunk are left out');
    });
  }

  /** Nothing counts as done before its tasks are. Never rejects. */
  async #work(): Promise<void> {
    // Whoever began it has to know of it before it is over.
    await Promise.resolve();
    for (;;) {
      const upTo = this.#share.lastSeq;
      const tasks = this.#tasks;
      this.#tasks = [];
      for (const task of tasks) await this.#try(task);
      if (this.#abort.signal.aborted) break;
      this.#share.moveCursor('_window', upTo);
      if (this.#tasks.length === 0 && this.#share.lastSeq === upTo) break;
    }
    this.#working = null;
  }

  async #try(task: () => Promise<void>): Promise<void> {
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
