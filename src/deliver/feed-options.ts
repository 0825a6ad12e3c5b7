import type { Clock } from '../core/clock.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import type { SinkStatus } from '../core/operations.ts';
import type { Target } from '../core/route.ts';
import type { ClaimCheck, Delivery, Sink, SinkLog } from '../core/sink.ts';
import type { Tracing } from '../core/tracing.ts';
import type { RoutesOfNow } from './settled-ahead.ts';
import type { RetryOptions } from './retry.ts';

/** Watches what feeds do; its methods must be cheap and never throw. */
export interface FeedObserver {
  /** One batch has been sent, whatever came of it. */
  sent(sink: string, batch: readonly Delivery[], durationMs: number): void;
  /** The sink has confirmed some deliveries of a batch. */
  delivered(sink: string, deliveries: readonly Delivery[]): void;
  /** One delivery has to be sent again. */
  retried(sink: string, delivery: Delivery, reason: string | null): void;
  /** A delivery has become a dead letter. */
  died(sink: string, delivery: Delivery, code: string, reason: string): void;
}

/** What all feeds have in common. */
export interface SharedOptions {
  readonly journal: EventLog;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly retry: RetryOptions;
  /** Milliseconds that a call of the sink may take; without it, for ever. */
  readonly sendTimeout?: number;
  /** Milliseconds without success after which a sink counts as down; without it, never. */
  readonly downAfter?: number;
  /** Deliveries and body bytes loaded from the journal at most. */
  readonly maxPending: number;
  readonly maxPendingBytes: number;
  /** All targets of an event, of every sink. */
  readonly targetsOf: (event: JournalEvent) => readonly Target[];
  /** Events of users whose erasure has begun are sent to nobody. */
  readonly isErased: (event: JournalEvent) => boolean;
  /** The routes of now; where they never change, left out. */
  readonly routes?: RoutesOfNow;
  readonly observer?: FeedObserver;
  /** Records a span around each batch; left out when nobody collects them. */
  readonly tracing?: Pick<Tracing, 'deliver'> | undefined;
}

/** Puts a whole event where its pointer can be followed to; a sink's `keep`. */
export type Keep = (event: JournalEvent, signal: AbortSignal) => Promise<ClaimCheck>;

export interface FeedOptions extends SharedOptions {
  readonly name: string;
  readonly sink: Sink;
  /** Where events go that are too large for the sink; without it they become dead letters. */
  readonly keep?: Keep;
  /** Whether opening it is tried again whatever is in the way. */
  readonly patient?: boolean;
}

/** What becomes, when a feed stops, of what it has loaded and not begun to send; left is what stays in the journal. */
export type Loaded = 'finished' | 'left';

export interface FeedStatus extends SinkStatus {
  /** `down` as `DownTracker` says it, `running` else, once it is open. */
  readonly mode: 'opening' | 'running' | 'down' | 'draining' | 'stopped';
  readonly cursor: number;
}

/** What has been loaded and is not to be sent any more. */
export interface Forgotten {
  /** Nothing newer is concerned: it was looked at when it came in. */
  readonly upTo: number;
  readonly owned: (event: JournalEvent) => boolean;
}
