import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { Client } from '../../sinks/kafka/client.ts';
import type { Connection } from '../../sinks/kafka/connection.ts';
import { toFailure } from '../../sinks/kafka/failure.ts';
import { Appender } from './appender.ts';
import { Cluster } from './cluster.ts';
import { dangersOf, type TopicUse } from './settings.ts';
import { MOST_CHUNK_BYTES } from './window.ts';

/** Milliseconds: brokers choose another leader within that, and between two tries. */
const [PATIENCE, PAUSE] = [30_000, 200];

export interface TopicsOptions {
  readonly connection: Connection;
  readonly topic: string;
  readonly quarantineTopic: string;
  readonly deadLetterTopic: string;
  readonly windowTopic: string;
  /** Milliseconds. */
  readonly timeout: number;
  readonly dedupWindow: number;
  readonly maxEventBytes: number;
  readonly codec: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  readonly log: SinkLog;
}

/** The topics of a journal, with one client that writes to them and one that reads; both connect when they are needed. */
export class Topics {
  readonly #options: TopicsOptions;
  readonly events: Appender;
  readonly quarantine: Appender;
  readonly deadLetters: Appender;
  readonly window: Appender;
  #client: Promise<Client> | null = null;
  #cluster: Promise<Cluster> | null = null;

  constructor(options: TopicsOptions) {
    this.#options = options;
    const { codec, timeout, maxEventBytes: maxBytes } = options;
    const client = (): Promise<Client> => this.#load();
    const make = (topic: string): Appender => new Appender({ topic, client, codec, timeout, maxBytes });
    this.events = make(options.topic);
    this.quarantine = make(options.quarantineTopic);
    this.deadLetters = make(options.deadLetterTopic);
    this.window = make(options.windowTopic);
  }

  /** @throws MillraceError journal_unreadable naming the topic that is not there, or that no broker answers */
  async open(): Promise<void> {
    const { topic, windowTopic } = this.#options;
    // That no broker answers is said at once.
    await this.#load()
      .then((client) => client.connect())
      .catch((error: unknown) => {
        const detail = `topic ${topic}: ${toFailure(error).reason}`;
        throw new MillraceError('journal_unreadable', detail, { cause: error });
      });
    for (const appender of this.#all) await patiently(appender.topic, () => appender.partitions());
    const [count, own] = [await this.events.partitions(), await this.window.partitions()];
    if (count !== own)
      throw new MillraceError(
        'journal_unreadable',
        `topic ${windowTopic} has ${own} partitions, and ${topic} has ${count}: they must be as many`,
      );
  }

  /** Says which settings of the topics lose events. */
  async warnOfSettings(): Promise<void> {
    const { topic, quarantineTopic, deadLetterTopic, windowTopic, dedupWindow, log } = this.#options;
    const { maxEventBytes: maxBytes } = this.#options;
    const cluster = await this.look();
    const uses: TopicUse[] = [
      { topic, keeps: 'all', maxBytes },
      { topic: quarantineTopic, keeps: 'until taken out', maxBytes },
      { topic: deadLetterTopic, keeps: 'until taken out', maxBytes },
      { topic: windowTopic, keeps: 'ids', maxBytes: MOST_CHUNK_BYTES, least: dedupWindow },
    ];
    for (const use of uses)
      for (const danger of await dangersOf(cluster, use)) log.warn({ topic: use.topic }, danger);
  }

  /** The client that reads. */
  look(): Promise<Cluster> {
    const { connection, timeout } = this.#options;
    this.#cluster ??= Cluster.load(connection, timeout, 0).catch((error: unknown) => {
      this.#cluster = null;
      throw error;
    });
    return this.#cluster;
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((appender) => appender.close()));
    const [client, cluster] = [await this.#client?.catch(() => null), await this.#cluster?.catch(() => null)];
    await Promise.all([client?.close(), cluster?.close()]);
  }

  get #all(): Appender[] {
    return [this.events, this.quarantine, this.deadLetters, this.window];
  }

  #load(): Promise<Client> {
    this.#client ??= Client.load(this.#options.connection, this.#options.timeout).catch((error: unknown) => {
      this.#client = null;
      throw error;
    });
    return this.#client;
  }
}

/**
 * Tries until it works: a process can start while a broker that leads is gone, and another one is chosen. Waiting does not help
 * where a topic is missing, or access is denied.
 * @throws MillraceError journal_unreadable naming the topic
 */
async function patiently<T>(topic: string, work: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + PATIENCE; ;)
    try {
      return await work();
    } catch (error) {
      const { kind, reason } = toFailure(error);
      if (kind === 'missing' || kind === 'denied' || performance.now() > end)
        throw new MillraceError('journal_unreadable', `topic ${topic}: ${reason}`, { cause: error });
      await wait(PAUSE);
    }
}
