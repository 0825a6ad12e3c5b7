import type { Clock } from '../core/clock.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import type { Target } from '../core/route.ts';
import type { Sink, SinkLog } from '../core/sink.ts';
import type { Keep } from './claim-check.ts';
import type { RetryOptions } from './retry.ts';

export interface FeedOptions {
  readonly name: string;
  readonly sink: Sink;
  readonly journal: EventLog;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly retry: RetryOptions;
  /** Deliveries and body bytes loaded from the journal at the most. */
  readonly maxPending: number;
  readonly maxPendingBytes: number;
  /** All targets of an event, of every sink. */
  readonly targetsOf: (event: JournalEvent) => readonly Target[];
  /** Where events go that are too large for the sink; without it they become dead letters. */
  readonly keep?: Keep;
  /** Told of each delivery the sink has confirmed. */
  readonly onDelivered?: (sink: string, event: JournalEvent) => void;
}

export type FeedMode = 'opening' | 'running' | 'paused' | 'draining' | 'stopped';

export interface FeedStatus {
  readonly sink: string;
  readonly mode: FeedMode;
  readonly cursor: number;
  /** Deliveries loaded and not settled, those in flight among them. */
  readonly pending: number;
  readonly inFlight: number;
  readonly delivered: number;
  readonly retried: number;
  readonly dead: number;
  readonly lastError: string | null;
}
