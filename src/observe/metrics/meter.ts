import type { Clock } from '../../core/clock.ts';
import { typeWithoutData } from '../../core/data-names.ts';
import { CATALOGUE } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import { ENCODING_DETAIL, ID_REUSED, type AppendResult, type InvalidReason } from '../../core/ingest.ts';
import type { ReceivingStatus } from '../../core/operations.ts';
import type { Delivery } from '../../core/sink.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Live } from '../../lib/live.ts';
import { Tally } from '../../lib/tally.ts';
import { INVALID_CODES } from '../../receive/validate/envelope.ts';
import { RecentAttempts, RecentEvents } from './recent.ts';
import { Refusals } from './refusals.ts';
import { Tail } from './tail.ts';

export interface MeterOptions {
  readonly clock: Clock;
  /** `index` is the route that decides for a type; null without one. */
  readonly plan: Live<{ readonly table: { routesFor(type: string): { readonly index: number | null } } }>;
}

/** How often and when deliveries last matched a configured secret. */
export interface SecretUse {
  matches: number;
  /** Milliseconds since the epoch. */
  lastUsed: number;
}

export interface Reloads {
  readonly succeeded: number;
  readonly failed: number;
  /** Milliseconds since the epoch; the start before the first reload. */
  readonly lastSuccess: number;
  /** Why the last reload failed; null when it did not. */
  readonly error: string | null;
}

/** Outcomes that are answered with 2xx. */
export const SUCCESSES: ReadonlySet<string> = new Set(['accepted', 'duplicate', 'quarantined', 'erased']);

/** Label of events without a route. */
export const NO_ROUTE = 'none';

/** A histogram: an observation is two additions. */
export class Distribution {
  /** Upper bounds, ascending. Larger values count in `count` and `sum` only. */
  readonly bounds: readonly number[];
  /** Values up to each bound, without those of the bound before it. */
  readonly counts: Float64Array;
  count = 0;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length);
  }

  observe(value: number): void {
    this.count += 1;
    this.sum += value;
    const { bounds } = this;
    // A linear search: most values are in the first buckets.
    for (let at = 0; at < bounds.length; at += 1) {
      if (value <= (bounds[at] ?? 0)) {
        this.counts[at] = (this.counts[at] ?? 0) + 1;
        return;
      }
    }
  }
}

/** Bounds in seconds for requests and sends. */
const FAST_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Bounds in seconds for deliveries, which wait while a sink is down. */
const SLOW_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86_400,
];

/** Counts what happens, in plain fields that metrics, status and console read. It keeps no bodies; labels are bounded. */
export class Meter {
  readonly #clock: Clock;
  readonly #plan: MeterOptions['plan'];
  readonly startedAt: number;
  /** By source, then by outcome. */
  readonly events = new Map<string, Tally>();
  /** Accepted events by type without data, and by the index of their route. */
  readonly types = new Tally();
  readonly routes = new Tally(10_000);
  readonly invalid = new Tally();
  readonly receiving = new Distribution(FAST_SECONDS);
  readonly committing = new Distribution(FAST_SECONDS);
  /** Seconds by sink: from receipt to confirmation, and of one `send`. */
  readonly delivering = new Map<string, Distribution>();
  readonly sending = new Map<string, Distribution>();
  /** By sink, then by code. */
  readonly deadLetters = new Map<string, Tally>();
  /** By index in `signing.secrets`. */
  readonly secrets = new Map<number, SecretUse>();
  readonly recent = new RecentEvents();
  readonly deliveries = new RecentAttempts();
  readonly tail: Tail;
  readonly refusals: Refusals;
  receivedBytes = 0;
  accepted = 0;
  duplicates = 0;
  quarantined = 0;
  /** Dropped events of erased users. */
  erased = 0;
  /** Deliveries answered with a problem. */
  refused = 0;
  reloads: Reloads;

  constructor({ clock, plan }: MeterOptions) {
    this.#clock = clock;
    this.#plan = plan;
    this.refusals = new Refusals(clock);
    this.tail = new Tail(clock);
    this.startedAt = clock.now();
    this.reloads = { succeeded: 0, failed: 0, lastSuccess: this.startedAt, error: null };
    // Series start at 0, so that the first event is an increase.
    for (const outcome of OUTCOMES) this.#outcomes('webhooks').add(outcome, 0);
    for (const code of [...INVALID_CODES, ID_REUSED.code, ...Object.keys(ENCODING_DETAIL)])
      this.invalid.add(code, 0);
  }

  /** A webhook delivery was answered. @param outcome `accepted`, `duplicate`, …, or the code of the problem */
  answered(
    outcome: string,
    info: { readonly durationMs: number; readonly bodyBytes: number; readonly secret: number | null },
  ): void {
    this.#outcomes('webhooks').add(outcome);
    this.receiving.observe(info.durationMs / 1000);
    this.receivedBytes += info.bodyBytes;
    if (!SUCCESSES.has(outcome)) {
      this.refused += 1;
      if (outcome !== 'gone') this.refusals.add(outcome);
      if (this.tail.isWatched) this.tail.add('refused', null, { code: outcome });
    }
    if (info.secret === null) return;
    const use = getOrMake(this.secrets, info.secret, () => ({ matches: 0, lastUsed: 0 }));
    use.matches += 1;
    use.lastUsed = this.#clock.now();
  }

  /** A valid event of any source was stored. */
  stored(event: Event, result: AppendResult): void {
    if (event.source !== 'webhooks')
      this.#outcomes(event.source).add(result.status === 'reused' ? 'quarantined' : result.status);
    if (result.status === 'accepted') {
      this.accepted += 1;
      const { type } = event;
      this.types.add(this.types.has(type) ? type : typeWithoutData(type, event));
      this.routes.add(String(this.#plan.value.table.routesFor(event.type).index ?? NO_ROUTE));
      this.recent.add(event, 'accepted', result.seq);
    } else if (result.status === 'duplicate') {
      this.duplicates += 1;
      this.recent.add(event, 'duplicate', null);
    } else if (result.status === 'reused') {
      this.#invalid(event, [ID_REUSED]);
      return;
    } else this.erased += 1;
    // Watchers see no event of an erased user.
    if (this.tail.isWatched) this.tail.add(result.status, result.status === 'erased' ? null : event);
  }

  /** An invalid event was quarantined. */
  storedInvalid(event: Event, reasons: readonly InvalidReason[], result: AppendResult): void {
    if (result.status !== 'accepted') {
      this.stored(event, result);
      return;
    }
    if (event.source !== 'webhooks') this.#outcomes(event.source).add('quarantined');
    this.#invalid(event, reasons);
  }

  #invalid(event: Event, reasons: readonly InvalidReason[]): void {
    this.quarantined += 1;
    for (const { code } of reasons) this.invalid.add(code);
    this.recent.add(event, 'quarantined', null);
    if (!this.tail.isWatched) return;
    const code = reasons.map((reason) => reason.code).join(', ');
    this.tail.add('quarantined', event, { code });
  }

  /** @param count how many secrets are configured */
  signing(count: number): ReceivingStatus['signing'] {
    const secrets = Array.from({ length: count }, (_, index) => {
      const { matches = 0, lastUsed = null } = this.secrets.get(index) ?? {};
      return { matches, lastUsed };
    });
    return { since: this.reloads.lastSuccess, secrets };
  }

  committed(_events: number, durationMs: number): void {
    this.committing.observe(durationMs / 1000);
  }

  sent(sink: string, _batch: readonly Delivery[], durationMs: number): void {
    getOrMake(this.sending, sink, () => new Distribution(FAST_SECONDS)).observe(durationMs / 1000);
  }

  delivered(sink: string, deliveries: readonly Delivery[]): void {
    const now = this.#clock.now();
    for (const { event, destination } of deliveries) {
      // The age of a replayed event does not measure the sink.
      const ms = event.handling.replayId === undefined ? Math.max(0, now - event.receivedAt) : null;
      this.deliveries.add(event.seq, { sink, destination, at: now, outcome: 'delivered', reason: null });
      if (this.tail.isWatched) this.tail.add('delivered', event, { sink, destination, ms });
      if (ms === null) continue;
      getOrMake(this.delivering, sink, () => new Distribution(SLOW_SECONDS)).observe(ms / 1000);
    }
  }

  retried(sink: string, { event, destination }: Delivery, reason: string | null): void {
    const at = this.#clock.now();
    this.deliveries.add(event.seq, { sink, destination, at, outcome: 'retried', reason });
    if (this.tail.isWatched) this.tail.add('retried', event, { sink, destination, reason });
  }

  died(sink: string, { event, destination }: Delivery, code: string, reason: string): void {
    getOrMake(this.deadLetters, sink, () => new Tally(50)).add(code);
    if (this.tail.isWatched) this.tail.add('dead', event, { sink, destination, code, reason });
  }

  /** @param error null when the new config is in force */
  reloaded(error: string | null): void {
    const { succeeded, failed, lastSuccess } = this.reloads;
    if (error !== null) {
      this.reloads = { succeeded, failed: failed + 1, lastSuccess, error };
      return;
    }
    this.reloads = { succeeded: succeeded + 1, failed, lastSuccess: this.#clock.now(), error: null };
    // Indices can mean other secrets and routes now.
    this.secrets.clear();
    this.routes.clear();
  }

  #outcomes(source: string): Tally {
    return getOrMake(this.events, source, () => new Tally());
  }
}

/** All outcomes of a delivery. */
const OUTCOMES: readonly string[] = [
  ...SUCCESSES,
  'gone',
  ...Object.entries(CATALOGUE).flatMap(([code, entry]) => ('status' in entry ? [code] : [])),
];
