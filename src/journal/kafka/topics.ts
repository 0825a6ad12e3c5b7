import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { Client } from '../../vendors/kafka/client.ts';
import type { Connection, connectionFields } from '../../vendors/kafka/connection.ts';
import { toFailure } from '../../vendors/kafka/failure.ts';
import { Appender } from './appender.ts';
import { Cluster } from './cluster.ts';
import type { KafkaJournal } from './config.ts';
import { MOST_CHUNK_BYTES } from './window.ts';

/** Milliseconds: how long a start waits for brokers to choose a leader, and between two tries. */
const [PATIENCE, PAUSE] = [30_000, 200];

/** `session` and `timeout` are milliseconds. */
export interface TopicsOptions extends Omit<KafkaJournal, keyof typeof connectionFields> {
  readonly connection: Connection;
  /** Milliseconds that an id is remembered. */
  readonly dedupWindow: number;
  readonly log: SinkLog;
}

/** The topics of a journal, with one client that writes to them and one that reads. */
export class Topics {
  readonly #options: TopicsOptions;
  readonly #client: Client;
  readonly cluster: Cluster;
  readonly events: Appender;
  readonly quarantine: Appender;
  readonly deadLetters: Appender;
  readonly window: Appender;

  constructor(options: TopicsOptions) {
    this.#options = options;
    const { connection, codec, timeout, maxEventBytes: maxBytes } = options;
    const client = new Client(connection, timeout);
    const make = (topic: string): Appender => new Appender({ topic, client, codec, timeout, maxBytes });
    this.#client = client;
    this.cluster = new Cluster(connection, timeout);
    this.events = make(options.topic);
    this.quarantine = make(options.quarantineTopic);
    this.deadLetters = make(options.deadLetterTopic);
    this.window = make(options.windowTopic);
  }

  /** @throws MillraceError journal_unreadable naming the topic that does not exist, or that no broker answers for */
  async open(): Promise<void> {
    const { topic, windowTopic } = this.#options;
    // Fails at once when no broker answers.
    await this.#client.any().catch((error: unknown) => {
      throw unreadable(topic, error);
    });
    for (const appender of this.#all) await leadersChosen(appender);
    const [count, own] = [await this.events.partitions(), await this.window.partitions()];
    if (count !== own)
      throw new MillraceError(
        'journal_unreadable',
        `topic ${windowTopic} has ${own} partitions, and ${topic} has ${count}: they must be as many`,
      );
  }

  /** Warns of settings of the topics that lose events. Of topics whose settings may not be asked, it says nothing. */
  async warnOfSettings(): Promise<void> {
    const { topic, quarantineTopic, deadLetterTopic, windowTopic, dedupWindow, log } = this.#options;
    const { maxEventBytes: maxBytes } = this.#options;
    const uses: TopicUse[] = [
      { topic, keeps: 'all', maxBytes },
      { topic: quarantineTopic, keeps: 'until taken out', maxBytes },
      { topic: deadLetterTopic, keeps: 'until taken out', maxBytes },
      { topic: windowTopic, keeps: 'ids', maxBytes: MOST_CHUNK_BYTES, least: dedupWindow },
    ];
    for (const use of uses) {
      const settings = await this.cluster.settings(use.topic).catch(() => null);
      for (const danger of settings === null ? [] : dangersIn(settings, use))
        log.warn({ topic: use.topic }, danger);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((appender) => appender.close()));
    await Promise.all([this.#client.close(), this.cluster.close()]);
  }

  get #all(): Appender[] {
    return [this.events, this.quarantine, this.deadLetters, this.window];
  }
}

/**
 * Waits until all partitions have leaders: a process can start while a broker is gone, and another one is chosen. Does not
 * wait where a topic does not exist, or access is denied.
 * @throws MillraceError journal_unreadable naming the topic
 */
async function leadersChosen(appender: Appender): Promise<void> {
  for (const end = performance.now() + PATIENCE; ;)
    try {
      await appender.partitions();
      return;
    } catch (error) {
      const { kind } = toFailure(error);
      if (kind === 'missing' || kind === 'denied' || performance.now() > end)
        throw unreadable(appender.topic, error);
      await wait(PAUSE);
    }
}

function unreadable(topic: string, cause: unknown): MillraceError {
  const detail = `topic ${topic}: ${toFailure(cause).reason}`;
  return new MillraceError('journal_unreadable', detail, { cause });
}

/** How a topic has to be kept. */
export interface TopicUse {
  readonly topic: string;
  /**
   * `all`: every record, for a time. `until taken out`: the last record of each key, until a tombstone. `ids`: every record
   * for `least` milliseconds; of equal records one is enough.
   */
  readonly keeps: 'all' | 'until taken out' | 'ids';
  /** Of the largest record. */
  readonly maxBytes: number;
  readonly least?: number;
}

const UNLIMITED = -1;

/**
 * Warnings of settings that lose events sooner or later.
 * @param settings by key, as brokers name them; a missing one is not judged
 */
export function dangersIn(
  settings: ReadonlyMap<string, string>,
  { keeps, maxBytes, least = 0 }: Omit<TopicUse, 'topic'>,
): string[] {
  const number = (name: string): number | null => {
    const text = settings.get(name) ?? '';
    return text === '' ? null : Number(text);
  };
  const policy = settings.get('cleanup.policy');
  const [compacts, deletes] = ['compact', 'delete'].map((each) => policy?.split(',').includes(each) === true);
  const retention = number('retention.ms') ?? UNLIMITED;
  const size = number('retention.bytes') ?? UNLIMITED;
  const most = number('max.message.bytes') ?? Infinity;
  const dangers: readonly (readonly [isSet: boolean, warning: string])[] = [
    [
      keeps === 'until taken out' && policy !== undefined && (compacts !== true || deletes === true),
      `cleanup.policy is ${policy}: what waits for a person is deleted; set it to compact`,
    ],
    [
      keeps === 'all' && compacts === true,
      `cleanup.policy is ${policy}: of each user only the last event is kept; set it to delete`,
    ],
    [
      deletes === true && retention !== UNLIMITED && retention < least,
      `retention.ms is ${retention}, less than journal.dedupWindow: a new deliverer forgets ids that came before, and forwards them again`,
    ],
    [
      keeps !== 'until taken out' && deletes === true && size !== UNLIMITED,
      `retention.bytes is ${size}: above it ${keeps === 'all' ? 'events are deleted that a sink has not had' : 'ids are forgotten'}; set it to -1`,
    ],
    [
      keeps !== 'ids' && most < maxBytes,
      `max.message.bytes is ${most}, less than journal.maxEventBytes: some events cannot be kept`,
    ],
    [
      keeps === 'ids' && most < maxBytes,
      `max.message.bytes is ${most}, less than the ${maxBytes} that the ids of a chunk can take: a new deliverer reads the events themselves`,
    ],
    [
      settings.get('unclean.leader.election.enable') === 'true',
      'unclean.leader.election.enable is true: a broker that lacks records can lead, and they are lost; set it to false',
    ],
    [
      keeps !== 'ids' && number('min.insync.replicas') === 1,
      'min.insync.replicas is 1: what is answered with 2xx may be on one broker alone; set it to 2, with three replicas',
    ],
  ];
  return dangers.flatMap(([isSet, warning]) => (isSet ? [warning] : []));
}
