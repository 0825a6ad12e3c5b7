import type { ErasableStore } from '../../core/erasure.ts';
import type { Event, Handling } from '../../core/event.ts';
import {
  ID_REUSED,
  type AppendResult,
  type IngestOptions,
  type InvalidReason,
  type IsErased,
} from '../../core/ingest.ts';
import type { EventStore, JournalStatus, LeasedLog } from '../../core/journal.ts';
import type { Route, Target } from '../../core/route.ts';
import { NO_ROUTES, type RouteRecord } from '../../core/route-record.ts';
import { ROOM } from './appender.ts';
import { GroupConsumer, type ConsumerOptions } from './group-consumer.ts';
import { RecentIds, recentPrint } from './id-table.ts';
import { addressed, recordOf, type RecordExtras } from './record.ts';
import { SetAsideEvents } from './set-aside-events.ts';
import { SharedLog } from './shared-log.ts';
import { TopicStatus } from './status.ts';
import { TopicAccount } from './topic-account.ts';
import type { Topics, TopicsOptions } from './topics.ts';
import { WindowKeeper } from './window-keeper.ts';

export interface KafkaJournalOptions extends TopicsOptions {
  /** Body bytes that may wait in memory for a sink. */
  readonly maxWaiting: number;
  /** The targets of an event by the present routes; decided once, when it is accepted. */
  readonly targetsOf: (event: { readonly type: string; readonly handling: Handling }) => readonly Target[];
  /** Names of the present sinks, for `status`. */
  readonly sinks: () => readonly string[];
  readonly handOver: (sink: string, signal: AbortSignal) => Promise<void>;
  readonly flushSink: (sink: string) => void;
  readonly isErased: IsErased;
  readonly topics: Topics;
}

/** The group of the window's keeper; no sink can have this name. */
const WINDOW = '_window';
/** Ids of the last events of this process that a generation of `RecentIds` has. */
const REMEMBERED = 50_000;
const DUPLICATE: AppendResult = { status: 'duplicate' };
const ERASED: AppendResult = { status: 'erased' };

/**
 * The journal in topics that a fleet shares: receivers append to one, and deliverers read their share of it, with a consumer
 * group for each sink. Nothing of it is on this machine.
 *
 * `accept` and `quarantine` answer once all in-sync replicas have the record. Whether it is a repetition is decided by the
 * order of the log, when it is read; only what this process had lately is answered as a duplicate.
 */
export class KafkaJournal extends SetAsideEvents implements EventStore, ErasableStore {
  readonly #options: KafkaJournalOptions;
  readonly #status: TopicStatus;
  readonly #consumers = new Map<string, GroupConsumer>();
  readonly #recent = new RecentIds(REMEMBERED);
  readonly #onReceived = new Set<() => void>();
  #keeper: WindowKeeper | null = null;
  #accepted = 0;

  constructor(options: KafkaJournalOptions) {
    super(options.topics);
    this.#options = options;
    const { cluster } = options.topics;
    this.#status = new TopicStatus({ ...options, cluster, countSetAside: () => this.counts() });
  }

  /** For processes that deliver. */
  async startKeeper(): Promise<void> {
    const { isErased } = this.#options;
    this.#keeper = new WindowKeeper({
      ...this.#consumerOptions(WINDOW),
      append: (partition, message) => this.#options.topics.window.append(partition, message),
      quarantineReused: async ({ event, dedupKey }) => {
        if (!isErased(event)) await this.addQuarantined(event, [ID_REUSED], dedupKey, null);
      },
    });
    await this.#keeper.start();
  }

  readonly name = 'journal';
  readonly checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };
  readonly lastSeq = 0;

  accept(event: Event, { handling = {}, dedupKey = event.id }: IngestOptions = {}): Promise<AppendResult> {
    return this.#unlessRecent('accepted', event, dedupKey, () =>
      this.#append(event, { handling, dedupKey }, ROOM),
    );
  }

  quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    { dedupKey = event.id }: IngestOptions = {},
  ): Promise<AppendResult> {
    return this.#unlessRecent('quarantined', event, dedupKey, () =>
      this.addQuarantined(event, reasons, dedupKey, ROOM),
    );
  }

  countErased(): Promise<AppendResult> {
    return Promise.resolve(ERASED);
  }

  /** Each event has its targets in its record; the present routes and those of its time decide what is redacted. */
  acceptUnder(routes: readonly Route[]): Promise<RouteRecord> {
    return Promise.resolve({ ...NO_ROUTES, eras: [{ after: 0, tables: [routes] }] });
  }

  logOf(sink: string): LeasedLog {
    const consumer = new GroupConsumer(this.#consumerOptions(sink));
    this.#consumers.set(sink, consumer);
    return consumer;
  }

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#consumers.values(), (consumer) => consumer.flush()));
  }

  async close(): Promise<void> {
    const signal = AbortSignal.timeout(this.#options.timeout);
    const consumers = Array.from(this.#consumers.values(), (consumer) => consumer.stop(signal));
    await Promise.all([this.#keeper?.stop(signal), ...consumers]);
    await this.#options.topics.close();
  }

  erased(): Promise<void> {
    return Promise.resolve();
  }

  status(): Promise<JournalStatus> {
    return this.#status.status();
  }

  /** For one reconciliation. */
  topicAccount(): TopicAccount {
    return new TopicAccount(this.#options, this.#options.topics.cluster);
  }

  /** For a replay. */
  sharedLog(): SharedLog {
    return new SharedLog(this.#options, this.#options.topics.cluster);
  }

  /** A user can have been erased since the event was set aside. */
  protected override async sendAgain(event: Event, extras: RecordExtras): Promise<boolean> {
    if (this.#options.isErased(event)) return false;
    await this.#append(event, extras);
    return true;
  }

  #append(
    event: Event,
    { handling = {}, ...extras }: RecordExtras,
    room: number | null = null,
  ): Promise<void> {
    const { id, type, user } = event;
    const key = user === null || user === '' ? null : Buffer.from(user.toWellFormed());
    const targets = this.#options.targetsOf({ type, handling });
    const record = recordOf(event, key, { ...extras, handling: addressed(handling, targets) });
    return this.#options.topics.events.append(key ?? Buffer.from(id), record, room);
  }

  /** @param kind what the event becomes: what was quarantined may be accepted later, and the other way round */
  async #unlessRecent(
    kind: 'accepted' | 'quarantined',
    event: Event,
    dedupKey: string,
    append: () => Promise<void>,
  ): Promise<AppendResult> {
    const print = recentPrint(kind, event.source, dedupKey, event.body);
    if (this.#recent.has(print)) return DUPLICATE;
    await append();
    this.#recent.add(print);
    this.#accepted += 1;
    for (const listener of this.#onReceived) listener();
    return { status: 'accepted', seq: this.#accepted };
  }

  #consumerOptions(sink: string): ConsumerOptions {
    const { group, isErased } = this.#options;
    return {
      ...this.#options,
      name: sink,
      group: `${group}.${sink}`,
      onReceived: this.#onReceived,
      addDeadLetter: async (deadLetter) => {
        if (!isErased(deadLetter.event)) await this.addDeadLetter(deadLetter);
      },
    };
  }
}
