import { MillraceError, messageOf } from '../core/errors.ts';
import type { Event, Handling } from '../core/event.ts';
import type { AppendResult, Ingest, IngestOptions, InvalidReason } from '../core/ingest.ts';
import { pack } from '../journal/rows.ts';
import type { DeliveryInfo, ReceiverLoad } from '../receive/options.ts';
import type { Outcome } from '../receive/outcome.ts';
import type { Report, ResultRow } from './protocol.ts';

export interface LinkOptions {
  /** Hands a report to the first process. */
  readonly send: (report: Report) => void;
  /** Plain data. */
  readonly load: () => ReceiverLoad;
}

interface Waiting {
  readonly event: Event;
  readonly handling: Handling | undefined;
  readonly invalid: string | null;
}

/** How long what became of deliveries may wait for events to travel with, milliseconds. */
const REPORT_DELAY = 50;

/**
 * A worker's way to the journal, which is in the first process: events of one turn of the event loop share a message.
 * They are webhooks, which have no key beside their id.
 * Nothing here says that an event is durable before that process has said so; when it is gone, its promise stays open
 * and this process ends.
 */
export class Link implements Ingest {
  readonly #options: LinkOptions;
  readonly #open = new Map<number, PromiseWithResolvers<AppendResult>>();
  #next = 0;
  #waiting: Waiting[] = [];
  #answered: (readonly [Outcome, DeliveryInfo])[] = [];
  #scheduled = false;
  #timer: NodeJS.Timeout | null = null;
  /** The connections as last reported. */
  #seen = '';

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  accept(event: Event, { handling }: IngestOptions = {}): Promise<AppendResult> {
    return this.#hand({ event, handling, invalid: null });
  }

  quarantine(event: Event, reasons: readonly InvalidReason[]): Promise<AppendResult> {
    return this.#hand({ event, handling: undefined, invalid: JSON.stringify(reasons) });
  }

  /** Notes what became of a delivery, for the metrics. */
  answered(outcome: Outcome, info: DeliveryInfo): void {
    this.#answered.push([outcome, info]);
    this.#timer ??= setTimeout(() => this.flush(), REPORT_DELAY).unref();
  }

  error(error: unknown): void {
    const stack = error instanceof Error ? error.stack : undefined;
    this.#options.send({ op: 'error', message: messageOf(error), stack });
  }

  /** The first process has dealt with these. */
  settle(results: readonly ResultRow[]): void {
    for (const [ticket, result, code, detail] of results) {
      const call = this.#open.get(ticket);
      this.#open.delete(ticket);
      if (result !== null) call?.resolve(result);
      else call?.reject(new MillraceError(code ?? 'internal', detail ?? ''));
    }
  }

  /** Sends what has gathered, if anything has or the connections are others. */
  flush(): void {
    this.#scheduled = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const waiting = this.#waiting;
    const answered = this.#answered;
    const load = this.#options.load();
    const { open, evicted, dropped } = load.connections;
    const seen = `${open} ${evicted} ${dropped}`;
    if (waiting.length === 0 && answered.length === 0 && seen === this.#seen) return;
    this.#seen = seen;
    this.#waiting = [];
    this.#answered = [];
    this.#options.send({
      op: 'work',
      first: this.#next - waiting.length,
      ...pack(waiting),
      invalid: waiting.map(({ invalid }) => invalid),
      answered,
      load,
    });
  }

  #hand(waiting: Waiting): Promise<AppendResult> {
    const call = Promise.withResolvers<AppendResult>();
    this.#open.set(this.#next, call);
    this.#next += 1;
    this.#waiting.push(waiting);
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.flush());
    }
    return call.promise;
  }
}
