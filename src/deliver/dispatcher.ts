import type { Clock } from '../core/clock.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import { parseTarget, type Target } from '../core/route.ts';
import type { Sink, SinkLog } from '../core/sink.ts';
import type { Keep } from './claim-check.ts';
import { Feed } from './feed.ts';
import type { FeedStatus } from './feed-options.ts';
import type { RetryOptions } from './retry.ts';

export interface DispatcherOptions {
  readonly journal: EventLog;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly sinks: ReadonlyMap<string, Sink>;
  readonly retry: RetryOptions;
  readonly maxPending: number;
  readonly maxPendingBytes: number;
  readonly routesFor: (type: string) => readonly Target[];
  /** For each sink with `oversize: claim-check`: where its large events are kept. */
  readonly keepers?: ReadonlyMap<string, Keep>;
  /** Told of each delivery a sink has confirmed. */
  readonly onDelivered?: (sink: string, event: JournalEvent) => void;
}

/** Everything after the 2xx: one feed a sink, each at its own pace. */
export class Dispatcher {
  readonly #feeds: readonly Feed[];

  constructor(options: DispatcherOptions) {
    const { sinks, routesFor, keepers, ...shared } = options;
    const targetsOf = (event: JournalEvent): readonly Target[] => {
      const { only } = event.handling;
      return only === undefined ? routesFor(event.type) : only.map(parseTarget);
    };
    this.#feeds = Array.from(sinks, ([name, sink]) => {
      const keep = keepers?.get(name);
      return new Feed({ ...shared, name, sink, targetsOf, ...(keep === undefined ? {} : { keep }) });
    });
  }

  /** Places every cursor, then opens every sink; see Feed.start for what it throws. */
  async start(): Promise<void> {
    await Promise.all(this.#feeds.map((feed) => feed.start()));
  }

  /** The cursor that is furthest behind; Infinity without sinks. */
  slowestCursor(): number {
    let least = Infinity;
    for (const feed of this.#feeds) least = Math.min(least, feed.cursor);
    return least;
  }

  status(): readonly FeedStatus[] {
    return this.#feeds.map((feed) => feed.status());
  }

  /** Settles when every feed has stopped; they have until `signal` aborts to send what they have loaded. */
  async stop(signal: AbortSignal): Promise<void> {
    const results = await Promise.allSettled(this.#feeds.map((feed) => feed.stop(signal)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
}
