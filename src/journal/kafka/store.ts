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
import { Cluster } from './cluster.ts';
import { Recent, recentName } from './id-table.ts';
import { Keeper } from './window-keeper.ts';
import { Ledger } from './topic-account.ts';
import { Letters } from './set-aside-events.ts';
import { addressed, recordOf, type Extra } from './record.ts';
import { SharedLog } from './shared-log.ts';
import { Share, type ShareOptions } from './group-consumer.ts';
import { TopicStatus } from './status.ts';
import type { Topics, TopicsOptions } from './topics.ts';

export interface KafkaJournalOptions extends TopicsOptions {
  /** Beginning of the names of the consumer groups. */
  readonly group: string;
  /** Milliseconds. */
  readonly session: number;
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
  readonly topics: Topics;
}

/** Ids of what this process had confirmed that are remembered at least, so that it can say that one is a repetition. */
const REMEMBERED = 50_000;
const DUPLICATE: AppendResult = { status: 'duplicate' };
const ERASED: AppendResult = { status: 'erased' };

/**
 * The journal in topics that a fleet shares: whoever receives appends to one, and whoever delivers reads its share of it, a
 * group of consumers for each sink. Nothing of it lies on this machine.
 *
 * `accept` and `quarantine` answer once all in-sync replicas have the record. Whether it is a repetition is decided by the
 * order of the log, where it is read; only what this process itself has seen of late is answered as one.
 */
export class KafkaJournal implements EventStore, ErasableStore {
  readonly #options: KafkaJournalOptions;
  readonly #topics: Topics;
  readonly #letters: Letters;
  readonly #status: TopicStatus;
  readonly #shares = new Map<string, Share>();
  readonly #recent = new Recent(REMEMBERED);
  readonly #received = new Set<() => void>();
  #keeper: Keeper | null = null;
  #accepted = 0;

  constructor(options: KafkaJournalOptions) {
    this.#options = options;
    this.#topics = options.topics;
    this.#letters = new Letters(options, this.#topics, async (event, extra) => {
      // Looked at anew, it may turn out to be of a user who has been erased since.
      if (options.isErased(event)) return false;
      await this.#append(event, extra);
      return true;
    });
    this.#status = new TopicStatus(options, () => this.#topics.look(), this.#letters);
  }

  /** What delivers keeps the window of ids as well. */
  async startKeeper(): Promise<void> {
    this.#keeper = new Keeper({
      ...this.#shareOptions('_window'),
      append: (partition, message) => this.#topics.window.append(partition, message),
      quarantineReused: async ({ event, dedupKey }) => {
        if (this.#options.isErased(event)) return;
        await this.#letters.addQuarantined(event, [ID_REUSED], dedupKey, null);
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
      this.#letters.addQuarantined(event, reasons, dedupKey, ROOM),
    );
  }

  countErased(): Promise<AppendResult> {
    return Promise.resolve(ERASED);
  }

  /** Each event carries where it goes; what leaves for there is said by the routes of now, and those it was accepted under. */
  acceptUnder(routes: readonly Route[]): Promise<RouteRecord> {
    return Promise.resolve({ ...NO_ROUTES, eras: [{ after: 0, tables: [routes] }] });
  }

  logOf(sink: string): LeasedLog {
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
    await this.#topics.close();
  }

  // What is set aside.
  readonly listQuarantine: Letters['listQuarantine'] = (...given) => this.#letters.listQuarantine(...given);
  readonly dropQuarantine: Letters['dropQuarantine'] = (...given) => this.#letters.dropQuarantine(...given);
  readonly release: Letters['release'] = (...given) => this.#letters.release(...given);
  readonly listDeadLetters: Letters['listDeadLetters'] = (...given) =>
    this.#letters.listDeadLetters(...given);
  readonly dropDeadLetters: Letters['dropDeadLetters'] = (...given) =>
    this.#letters.dropDeadLetters(...given);
  readonly retryDeadLetters: Letters['retryDeadLetters'] = (...given) =>
    this.#letters.retryDeadLetters(...given);
  readonly erase: Letters['erase'] = (...given) => this.#letters.erase(...given);
  /** Of the events that are read from the log who was erased is left out; what is set aside has to be taken out. */
  readonly settled: Letters['settled'] = (...given) => this.#letters.settled(...given);

  status(): Promise<JournalStatus> {
    return this.#status.status();
  }

  /** For one reconciliation. */
  async ledger(): Promise<Ledger> {
    const { dedupWindow: window } = this.#options;
    return new Ledger({ ...this.#options, window }, await this.#topics.look());
  }

  /** For who reads each event once. */
  async sharedLog(): Promise<SharedLog> {
    const { dedupWindow: window } = this.#options;
    return new SharedLog({ ...this.#options, window }, await this.#topics.look());
  }

  erased(): Promise<void> {
    return Promise.resolve();
  }

  async flush(): Promise<void> {
    await Promise.all(Array.from(this.#shares.values(), (share) => share.flush()));
  }

  #append(event: Event, { handling = {}, ...extra }: Extra, room: number | null = null): Promise<void> {
    const handled = addressed(handling, this.#options.targetsOf({ type: event.type, handling }));
    const user = event.user === null || event.user === '' ? null : Buffer.from(event.user.toWellFormed());
    const record = recordOf(event, user, { ...extra, handling: handled });
    return this.#topics.events.append(user ?? Buffer.from(event.id), record, room);
  }

  /** @param kind what it becomes: what was quarantined may be accepted later, and the other way round */
  async #unlessRecent(
    kind: 'accepted' | 'quarantined',
    event: Event,
    dedupKey: string,
    append: () => Promise<void>,
  ): Promise<AppendResult> {
    const name = recentName(kind, event.source, dedupKey, event.body);
    if (this.#recent.has(name)) return DUPLICATE;
    await append();
    this.#recent.add(name);
    this.#accepted += 1;
    for (const listener of this.#received) listener();
    return { status: 'accepted', seq: this.#accepted };
  }

  #shareOptions(sink: string): ShareOptions {
    const { group, dedupWindow, maxWaiting, handOver, flushSink, ...options } = this.#options;
    const { topic, windowTopic, deadLetterTopic, session, connection, timeout, log } = options;
    return {
      name: sink,
      group: `${group}.${sink}`,
      topic,
      windowTopic,
      deadLetterTopic,
      session,
      window: dedupWindow,
      maxBytes: maxWaiting,
      connect: (patience) => Cluster.load(connection, timeout, patience),
      handOver: (signal) => handOver(sink, signal),
      flushSink: () => flushSink(sink),
      onReceived: (listener) => {
        this.#received.add(listener);
        return () => this.#received.delete(listener);
      },
      addDeadLetter: async (letter) => {
        if (!this.#options.isErased(letter.event)) await this.#letters.addDeadLetter(letter);
      },
      log,
    };
  }
}
