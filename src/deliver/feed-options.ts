import type { Clock } from '../core/clock.ts';
import type { JournalEvent } from '../core/event.ts';
import type { FeedLog } from '../core/journal.ts';
import type { SinkStatus } from '../core/operations.ts';
import type { Target } from '../core/route.ts';
import type { Delivery, Sink, SinkLog } from '../core/sink.ts';
import type { Tracing } from '../core/tracing.ts';
import type { NumberSet } from '../lib/number-set.ts';
import type { RetryOptions } from './retry.ts';
import type { CurrentRoutes } from './settled-ahead.ts';

/** Counts what feeds do; its methods must be cheap and never throw. */
export interface FeedObserver {
  /** One batch has been answered, with any results. */
  sent(sink: string, batch: readonly Delivery[], durationMs: number): void;
  /** The sink has confirmed some deliveries of a batch. */
  delivered(sink: string, deliveries: readonly Delivery[]): void;
  /** One delivery has to be sent again. */
  retried(sink: string, delivery: Delivery, reason: string | null): void;
  /** A delivery has become a dead letter. */
  died(sink: string, delivery: Delivery, code: string, reason: string): void;
}

/** Options that all feeds share. */
export interface SharedOptions {
  readonly journal: FeedLog;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly retry: RetryOptions;
  /** Milliseconds that a call of the sink may take; no limit when absent. */
  readonly sendTimeout?: number;
  /** Milliseconds without success after which a sink counts as down; never when absent. */
  readonly downAfter?: number;
  /** Deliveries and body bytes loaded from the journal at most. */
  readonly maxPending: number;
  readonly maxPendingBytes: number;
  /** All targets of an event, of every sink. */
  readonly targetsOf: (event: JournalEvent) => readonly Target[];
  /** Whether the erasure of the event's user has begun: the event is not sent. */
  readonly isErased: (event: JournalEvent) => boolean;
  /** Absent where the routes never change. */
  readonly routes?: CurrentRoutes;
  readonly observer?: FeedObserver;
  /** Records a span around each batch. */
  readonly tracing?: Pick<Tracing, 'deliver'> | undefined;
}

export interface FeedOptions extends SharedOptions {
  readonly name: string;
  readonly sink: Sink;
  /** Keeps events that are too large for the sink; without it they become dead letters. */
  readonly keep?: NonNullable<Sink['keep']>;
  /** Retries `open` after any error, also after one that waiting cannot mend. */
  readonly patient?: boolean;
}

export interface FeedStatus extends SinkStatus {
  /** `down` is said by `DownTracker`; otherwise `running`, once the sink is open. */
  readonly mode: 'opening' | 'running' | 'down' | 'draining' | 'stopped';
  readonly cursor: number;
}

/** What the parts of a feed report to it. */
export interface FeedEvents {
  /** Deliveries were settled, held or loaded. */
  moved(): void;
  /** There may be something to load or to send. */
  ready(): void;
  /** The sink itself, or a read of the journal, has failed. @param delayMs the wait that the sink asked for, or 0 */
  failed(reason: string, delayMs: number): void;
  /** A batch was answered without trouble. @param reason why some of it is sent again; null when nothing is */
  batchAnswered(reason: string | null, hasProgressed: boolean): void;
  /** The sink has confirmed deliveries that it held. */
  confirmed(deliveries: number, seqs: SeqsByDestination): void;
  /** The sink has lost deliveries that it held; they are deferred now. */
  lost(deliveries: number, reason: unknown): void;
}

/** Seqs of events by the destination of their delivery. */
export type SeqsByDestination = ReadonlyMap<string | null, NumberSet>;

/** Events that must not be sent any more. */
export interface ForgetRequest {
  /** Newer events were checked when they came in. */
  readonly upTo: number;
  readonly owned: (event: JournalEvent) => boolean;
}
