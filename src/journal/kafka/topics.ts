import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { Client } from '../../vendors/kafka/client.ts';
import type { Connection } from '../../vendors/kafka/connection.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import { Appender } from './appender.ts';
import { Cluster } from './cluster.ts';
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
    for (const use of uses) {
      // Who may not ask is told nothing.
      const settings = await cluster.settings(use.topic).catch(() => null);
      for (const danger of settings === null ? [] : dangersIn(settings, use))
        log.warn({ topic: use.topic }, danger);
    }
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

/** What a topic is for says how it must be kept. */
export interface TopicUse {
  readonly topic: string;
  /**
   * `all`: every record, for a time. `until taken out`: the last of each key, until a tombstone. `ids`: every record for
   * `least` milliseconds, though the same again would do.
   */
  readonly keeps: 'all' | 'until taken out' | 'ids';
  /** Of one record, at most. */
  readonly maxBytes: number;
  readonly least?: number;
}

const UNLIMITED = -1;

/**
 * What of a topic's settings loses events sooner or later, in words.
 * @param settings by key, as brokers name them; what is not among them is not judged
 */
export function dangersIn(
  settings: ReadonlyMap<string, string>,
  { keeps, maxBytes, least }: Omit<TopicUse, 'topic'>,
): string[] {
  const dangers: string[] = [];
  const number = (name: string): number | null => {
    const text = settings.get(name) ?? '';
    return text === '' ? null : Number(text);
  };
  const policy = settings.get('cleanup.policy');
  const [compacts, deletes] = ['compact', 'delete'].map((each) => policy?.split(',').includes(each) === true);
  if (policy !== undefined && keeps === 'until taken out' && (compacts !== true || deletes === true))
    dangers.push(`cleanup.policy is ${policy}: what waits for a person is deleted; set it to compact`);
  if (compacts === true && keeps === 'all')
    dangers.push(`cleanup.policy is ${policy}: of each user only the last event is kept; set it to delete`);
  const retention = number('retention.ms');
  if (
    least !== undefined &&
    deletes === true &&
    retention !== null &&
    retention !== UNLIMITED &&
    retention < least
  )
    dangers.push(
      `retention.ms is ${retention}, less than journal.dedupWindow: a new deliverer forgets ids that came before, and forwards them again`,
    );
  const size = number('retention.bytes');
  if (deletes === true && keeps !== 'until taken out' && size !== null && size !== UNLIMITED)
    dangers.push(
      `retention.bytes is ${size}: when so much has come, ${keeps === 'all' ? 'events are deleted that a sink has not had' : 'ids are forgotten'}; set it to -1`,
    );
  const most = number('max.message.bytes');
  if (most !== null && most < maxBytes)
    dangers.push(
      keeps === 'ids'
        ? `max.message.bytes is ${most}, less than the ${maxBytes} that the ids of a chunk can take: a new deliverer reads the events themselves`
        : `max.message.bytes is ${most}, less than journal.maxEventBytes: some events cannot be kept`,
    );
  if (settings.get('unclean.leader.election.enable') === 'true')
    dangers.push(
      'unclean.leader.election.enable is true: a broker that has not got all can lead, and what it lacks is lost; set it to false',
    );
  if (keeps !== 'ids' && number('min.insync.replicas') === 1)
    dangers.push(
      'min.insync.replicas is 1: what is answered with 2xx may be on one broker alone; set it to 2, with three replicas',
    );
  return dangers;
}
