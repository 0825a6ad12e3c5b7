import type { ErasableStore, ErasureRun } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../../core/event.ts';
import {
  ID_REUSED,
  type AppendResult,
  type IngestOptions,
  type InvalidReason,
  type IsErased,
} from '../../core/ingest.ts';
import type {
  DeadLetter,
  EventLog,
  EventStore,
  JournalStatus,
  QuarantinedEvent,
  Selection,
} from '../../core/journal.ts';
import { formatTarget, type Target } from '../../core/route.ts';
import { NO_ROUTES, type RouteRecord } from '../../core/route-record.ts';
import type { SinkLog } from '../../core/sink.ts';
import { Client } from '../../sinks/kafka/client.ts';
import type { Connection } from '../../sinks/kafka/connection.ts';
import { toFailure } from '../../sinks/kafka/failure.ts';
import { Appender, ROOM } from './appender.ts';
import { Cluster } from './cluster.ts';
import { eraseFromTopics } from './erasure.ts';
import { fingerprintOf } from './ids.ts';
import { Keeper } from './keeper.ts';
import { recordOf, type Extra, type SharedEvent } from './record.ts';
import { SetAsideTopic, type Aside } from './set-aside.ts';
import { dangersOf, type TopicUse } from './settings.ts';
import { Share, type ShareOptions } from './share.ts';
import { TopicStatus } from './status.ts';
import { MOST_CHUNK_BYTES, RELEASED, RETRIED } from './window.ts';

export interface KafkaJournalOptions {
  readonly connection: Connection;
  readonly topic: string;
  readonly quarantineTopic: string;
  readonly deadLetterTopic: string;
  readonly windowTopic: string;
  /** Beginning of the names of the consumer groups. */
  readonly group: string;
  /** Milliseconds. */
  readonly session: number;
  readonly timeout: number;
  readonly dedupWindow: number;
  readonly maxEventBytes: number;
  readonly codec: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  /** Body bytes that may wait in memory for a sink. */
  readonly maxWaiting: number;
  /** Where an event goes, by the routes of now: said once, when it is accepted. */
  readonly targetsOf: (event: { readonly type: string; readonly handling: Handling }) => readonly Target[];
  /** Names of the sinks of now, for `status`. */
  readonly sinks: () => readonly string[];
  readonly handOver: (sink: string, signal: AbortSignal) => Promise<void>;
  readonly flushSink: (sink: string) => void;
  /** Whether an event is of a user who was erased: nothing of it is set aside. */
  readonly isErased: IsErased;
  readonly log: SinkLog;
}

/** Fingerprints of what this process had confirmed that are remembered, so that it can say that one is a repetition. */
const REMEMBERED = 100_000;
const DUPLICATE: AppendResult = { status: 'duplicate' };
const ERASED: AppendResult = { status: 'erased' };
/** Characters of what a dead letter says. */
const LONGEST_REASON = 1000;
/** Milliseconds for which a status holds: each asks the brokers. */
const STATUS_AGE = 2000;

/**
 * The journal in topics that a fleet shares: whoever receives appends to one, and whoever delivers reads its share of it, a
 * group of consumers for each sink. Nothing of it lies on this machine.
 *
 * `accept` and `quarantine` answer once all in-sync replicas have the record. Whether it is a repetition is decided by the
 * order of the log, where it is read; only what this process itself has seen of late is answered as one.
 */
export class KafkaJournal implements EventStore, ErasableStore {
  readonly #options: KafkaJournalOptions;
  readonly #events: Appender;
  readonly #quarantine: SetAsideTopic;
  readonly #deadLetters: SetAsideTopic;
  readonly #appenders: ReadonlyMap<string, Appender>;
  readonly #shares = new Map<string, Share>();
  readonly #recent = new Set<string>();
  #keeper: Keeper | null = null;
  #client: Promise<Client> | null = null;
  #cluster: Promise<Cluster> | null = null;
  #accepted = 0;
  readonly #topicStatus = new TopicStatus(() => this.#look());
  #status: { readonly at: number; readonly answer: Promise<JournalStatus> } | null = null;

  constructor(options: KafkaJournalOptions) {
    this.#options = options;
    const {
      topic,
      quarantineTopic,
      deadLetterTopic,
      windowTopic,
      codec,
      timeout,
      maxEventBytes: maxBytes,
    } = options;
    const client = (): Promise<Client> => this.#load();
    const make = (name: string): Appender => new Appender({ topic: name, client, codec, timeout, maxBytes });
    const [quarantine, letters] = [make(quarantineTopic), make(deadLetterTopic)];
    this.#events = make(topic);
    this.#appenders = new Map([
      [topic, this.#events],
      [quarantineTopic, quarantine],
      [deadLetterTopic, letters],
      [windowTopic, make(windowTopic)],
    ]);
    const connect = (): Promise<Cluster> => this.#look();
    this.#quarantine = new SetAsideTopic(quarantineTopic, quarantine, connect);
    this.#deadLetters = new SetAsideTopic(deadLetterTopic, letters, connect);
  }

  /** @throws MillraceError journal_unreadable naming the topic that is not there, or that no broker answers */
  async open(): Promise<void> {
    for (const [topic, appender] of this.#appenders)
      await appender.partitions().catch((error: unknown) => {
        throw new MillraceError('journal_unreadable', `topic ${topic}: ${toFailure(error).reason}`, {
          cause: error,
        });
      });
    const [events, window] = [this.#events, this.#appenders.get(this.#options.windowTopic)];
    const [count, own] = [await events.partitions(), await window?.partitions()];
    if (count !== own)
      throw new MillraceError(
        'journal_unreadable',
        `topic ${this.#options.windowTopic} has ${own} partitions, and ${this.#options.topic} has ${count}: they must be as many`,
      );
  }

  /** Says which settings of the topics lose events. */
  async warnOfSettings(): Promise<void> {
    const { topic, quarantineTopic, deadLetterTopic, windowTopic, dedupWindow, log } = this.#options;
    const { maxEventBytes: maxBytes } = this.#options;
    const cluster = await this.#look();
    const uses: TopicUse[] = [
      { topic, keeps: 'all', maxBytes },
      { topic: quarantineTopic, keeps: 'until taken out', maxBytes },
      { topic: deadLetterTopic, keeps: 'until taken out', maxBytes },
      { topic: windowTopic, keeps: 'ids', maxBytes: MOST_CHUNK_BYTES, least: dedupWindow },
    ];
    for (const use of uses)
      for (const danger of await dangersOf(cluster, use)) log.warn({ topic: use.topic }, danger);
  }

  /** What delivers keeps the window of ids as well. */
  async startKeeper(): Promise<void> {
    this.#keeper = new Keeper({
      ...this.#shareOptions('_window'),
      append: (partition, message) => this.#to(this.#options.windowTopic).append(partition, message),
      quarantineReused: async (event, dedupKey) => {
        if (this.#options.isErased(event)) return;
        await this.#setAside(event, [ID_REUSED], dedupKey);
      },
    });
    await this.#keeper.start();
  }

  readonly checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };
  readonly lastSeq = 0;

  async accept(
    event: Event,
    { handling = {}, dedupKey = event.id }: IngestOptions = {},
  ): Promise<AppendResult> {
    const print = fingerprintOf(event.source, dedupKey, event.body).toString('latin1');
    if (this.#recent.has(print)) return DUPLICATE;
    await this.#append(event, { handling, dedupKey }, ROOM);
    this.#remember(print);
    this.#accepted += 1;
    return { status: 'accepted', seq: this.#accepted };
  }

  async quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    { dedupKey = event.id }: IngestOptions = {},
  ): Promise<AppendResult> {
    const print = `${fingerprintOf(event.source, dedupKey, event.body).toString('latin1')}!`;
    if (this.#recent.has(print)) return DUPLICATE;
    await this.#setAside(event, reasons, dedupKey, ROOM);
    this.#remember(print);
    this.#accepted += 1;
    return { status: 'accepted', seq: this.#accepted };
  }

  countErased(): Promise<AppendResult> {
    return Promise.resolve(ERASED);
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  /** Each event carries where it goes. */
  acceptUnder(): Promise<RouteRecord> {
    return Promise.resolve(NO_ROUTES);
  }

  logOf(sink: string): EventLog {
    const share = new Share(this.#shareOptions(sink));
    this.#shares.set(sink, share);
    return share;
  }

  async close(): Promise<void> {
    const signal = AbortSignal.timeout(this.#options.timeout);
    await Promise.all([
      this.#keeper?.stop(signal),
      ...Array.from(this.#shares.values(), (share) => share.stop(signal)),
    ]);
    await Promise.all(Array.from(this.#appenders.values(), (appender) => appender.close()));
    const [client, cluster] = [await this.#client?.catch(() => null), await this.#cluster?.catch(() => null)];
    await Promise.all([client?.close(), cluster?.close()]);
  }

  status(): Promise<JournalStatus> {
    const now = performance.now();
    const last = this.#status;
    if (last !== null && now - last.at <= STATUS_AGE) return last.answer;
    // While no broker answers, what was last known is better than no metrics at all.
    const answer = this.#statusNow().catch(async (error: unknown) => {
      if (last === null) throw error;
      return last.answer;
    });
    this.#status = { at: now, answer };
    return answer;
  }

  async listQuarantine(selection: Selection, bodies = true): Promise<readonly QuarantinedEvent[]> {
    const found = await this.#quarantine.list(selection, bodies);
    return found.map(({ key, kept, bodyBytes }) => ({
      ...kept.event,
      key,
      reasons: kept.reasons,
      bodyBytes,
    }));
  }

  dropQuarantine(selection: Selection): Promise<number> {
    return this.#quarantine.drop(selection);
  }

  async release(key: number, event: Event): Promise<void> {
    const [found] = await this.#quarantine.list({ keys: [key] }, false);
    // Somebody else has taken it out.
    if (found === undefined) return;
    const { dedupKey } = found.kept;
    // Looked at anew, it may turn out to be of a user who has been erased since.
    if (!this.#options.isErased(event)) await this.#append(event, { dedupKey, again: `${RELEASED} ${key}` });
    await this.#quarantine.remove(key);
  }

  async listDeadLetters(selection: Selection, bodies = true): Promise<readonly DeadLetter[]> {
    return (await this.#deadLetters.list(selection, bodies)).flatMap(letterOf);
  }

  dropDeadLetters(selection: Selection): Promise<number> {
    return this.#deadLetters.drop(selection);
  }

  async retryDeadLetters(selection: Selection): Promise<number> {
    const letters = await this.listDeadLetters(selection);
    for (const { key, sink, destination, diedAt, event } of letters) {
      const handling = { ...event.handling, only: [formatTarget({ sink, destination })] };
      await this.#append(event, { handling, again: `${RETRIED} ${key} of ${diedAt}` });
      await this.#deadLetters.remove(key);
    }
    return letters.length;
  }

  heads(): Promise<never> {
    return unread();
  }

  account(): Promise<never> {
    return unread();
  }

  readonly name = 'journal';

  async erase(run: ErasureRun): Promise<void> {
    const { topic: events, quarantineTopic, deadLetterTopic } = this.#options;
    const setAside = new Map([
      [quarantineTopic, this.#quarantine],
      [deadLetterTopic, this.#deadLetters],
    ]);
    await eraseFromTopics({ events, setAside, connect: () => this.#look() }, run);
  }

  erased(): Promise<void> {
    return Promise.resolve();
  }

  /** What waits is read by sink, through `logOf`. */
  read(): Promise<readonly JournalEvent[]> {
    return unread();
  }

  subscribe(): () => void {
    return () => undefined;
  }

  openCursor(): Promise<number> {
    return Promise.resolve(0);
  }

  releaseCursor(sink: string): void {
    const share = this.#shares.get(sink);
    this.#shares.delete(sink);
    share?.releaseCursor();
  }

  moveCursor(): void {}

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#shares.values(), (share) => share.flush()));
  }

  async addDeadLetter({ event, ...letter }: Omit<DeadLetter, 'key'>): Promise<void> {
    if (this.#options.isErased(event)) return;
    const print = fingerprintOf(event.source, event.id, event.body).toString('hex');
    // One that is retried and refused once more is another one: the earlier is about to be taken out.
    const { again = null }: SharedEvent = event;
    const key = Buffer.from(JSON.stringify([letter.sink, letter.destination, print, again]));
    const { sink, destination, code, reason, attempts, diedAt } = letter;
    const extra: Extra = {
      handling: event.handling,
      letter: { sink, destination, code, reason: shortened(reason), attempts, diedAt },
    };
    await this.#to(this.#options.deadLetterTopic).append(key, recordOf(event, key, extra));
  }

  async #append(event: Event, { handling = {}, ...extra }: Extra, room: number | null = null): Promise<void> {
    const only = this.#options.targetsOf({ type: event.type, handling }).map(formatTarget);
    const key = event.user === null || event.user === '' ? null : Buffer.from(event.user.toWellFormed());
    const message = recordOf(event, key, { ...extra, handling: { ...handling, only } });
    // What is of no user is found again by its id.
    await this.#events.append(key ?? Buffer.from(event.id), message, room);
  }

  async #setAside(
    event: Event,
    reasons: readonly InvalidReason[],
    dedupKey: string,
    room: number | null = null,
  ): Promise<void> {
    const print = fingerprintOf(event.source, dedupKey, event.body);
    const key = Buffer.from(print.toString('hex'));
    const message = recordOf(event, key, { reasons, dedupKey });
    await this.#to(this.#options.quarantineTopic).append(key, message, room);
  }

  #to(topic: string): Appender {
    return this.#appenders.get(topic) ?? this.#events;
  }

  #remember(print: string): void {
    this.#recent.add(print);
    // A Set keeps the order of insertion: the first is the oldest.
    for (const oldest of this.#recent) {
      if (this.#recent.size <= REMEMBERED) break;
      this.#recent.delete(oldest);
    }
  }

  async #statusNow(): Promise<JournalStatus> {
    const { topic, sinks, group } = this.#options;
    return {
      ...(await this.#topicStatus.read({ topic, group, sinks: sinks() })),
      path: `kafka:${topic}`,
      bytes: 0,
      maxBytes: 0,
      quarantined: await this.#quarantine.count(),
      deadLetters: await this.#deadLetters.count(),
      damaged: 0,
    };
  }

  #shareOptions(sink: string): ShareOptions {
    const { group, dedupWindow, maxWaiting, handOver, flushSink, ...options } = this.#options;
    const { topic, windowTopic, session, connection, timeout, log } = options;
    return {
      name: sink,
      group: `${group}.${sink}`,
      topic,
      windowTopic,
      session,
      window: dedupWindow,
      maxBytes: maxWaiting,
      connect: (patience) => Cluster.load(connection, timeout, patience),
      handOver: (signal) => handOver(sink, signal),
      flushSink: () => flushSink(sink),
      addDeadLetter: (letter) => this.addDeadLetter(letter),
      log,
    };
  }

  #load(): Promise<Client> {
    this.#client ??= Client.load(this.#options.connection, this.#options.timeout).catch((error: unknown) => {
      this.#client = null;
      throw error;
    });
    return this.#client;
  }

  #look(): Promise<Cluster> {
    this.#cluster ??= Cluster.load(this.#options.connection, this.#options.timeout, 0).catch(
      (error: unknown) => {
        this.#cluster = null;
        throw error;
      },
    );
    return this.#cluster;
  }
}

/** What a sink said may be as long as a page. */
function shortened(reason: string): string {
  return reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON).toWellFormed()} …`;
}

function unread(): Promise<never> {
  const detail =
    'with journal.type: kafka the journal cannot be read event by event yet: read an archive instead';
  return Promise.reject(new MillraceError('usage', detail));
}

/** A dead letter of the topic; nothing for a record that is none. */
function letterOf({ key, kept, bodyBytes }: Aside): DeadLetter[] {
  const { event, handling, letter } = kept;
  if (letter === null) return [];
  return [{ ...letter, key, bodyBytes, event: { ...event, handling, seq: 0 } }];
}
