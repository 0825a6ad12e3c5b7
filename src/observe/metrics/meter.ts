import type { Clock } from '../../core/clock.ts';
import { typeWithoutData } from '../../core/data-names.ts';
import { CATALOGUE } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import { ID_REUSED, type AppendResult, type InvalidReason } from '../../core/ingest.ts';
import type { ReceivingStatus } from '../../core/operations.ts';
import type { Delivery } from '../../core/sink.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Live } from '../../lib/live.ts';
import { Deliveries } from './deliveries.ts';
import { Distribution, FAST_SECONDS, SLOW_SECONDS } from './distribution.ts';
import { RecentEvents } from './recent.ts';
import { Refusals } from './refusals.ts';
import { Tally } from '../../lib/tally.ts';
import { Tail } from './tail.ts';

export interface MeterOptions {
  readonly clock: Clock;
  /** `index` is that of the route which decides for a type; null when none does. */
  readonly plan: Live<{ readonly table: { routesFor(type: string): { readonly index: number | null } } }>;
}

/** When and how often deliveries matched one of the configured secrets. */
export interface SecretUse {
  matches: number;
  /** Milliseconds since the epoch. */
  lastUsed: number;
}

export interface Reloads {
  readonly succeeded: number;
  readonly failed: number;
  /** Milliseconds since the epoch; of the start until the first reload. */
  readonly lastSuccess: number;
  /** Why the last reload failed; null when it did not. */
  readonly error: string | null;
}

/** Outcomes that are answered with 2xx. */
export const TAKEN: ReadonlySet<string> = new Set(['accepted', 'duplicate', 'quarantined', 'erased']);

/** Name under which events without a route are counted. */
export const NO_ROUTE = 'none';

/**
 * Counts what happens, in plain fields: each hook costs some additions, and whoever wants to know reads them later.
 * Nothing here holds a body, and no label comes from a user.
 */
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
  /** By sink: from receipt to confirmation, and the length of one `send`. */
  readonly delivering = new Map<string, Distribution>();
  readonly sending = new Map<string, Distribution>();
  /** By sink, then by code. */
  readonly deadLetters = new Map<string, Tally>();
  /** By index in `signing.secrets`. */
  readonly secrets = new Map<number, SecretUse>();
  readonly recent = new RecentEvents();
  readonly deliveries = new Deliveries();
  readonly tail: Tail;
  readonly refusals: Refusals;
  receivedBytes = 0;
  accepted = 0;
  duplicates = 0;
  quarantined = 0;
  /** Dropped, because their user's data was erased. */
  erased = 0;
  /** Answered with a problem, whatever it was. */
  refused = 0;
  reloads: Reloads;

  constructor({ clock, plan }: MeterOptions) {
    this.#clock = clock;
    this.#plan = plan;
    this.refusals = new Refusals(clock);
    this.tail = new Tail(clock);
    this.startedAt = clock.now();
    this.reloads = { succeeded: 0, failed: 0, lastSuccess: this.startedAt, error: null };
    // From the start on, so that the first event of its kind is seen as an increase.
    for (const outcome of OUTCOMES) this.#outcomes('webhooks').add(outcome, 0);
  }

  /**
   * A webhook delivery has been answered.
   * @param outcome its kind, or the code of the problem
   */
  answered(
    outcome: string,
    info: { readonly durationMs: number; readonly bodyBytes: number; readonly secret: number | null },
  ): void {
    this.#outcomes('webhooks').add(outcome);
    this.receiving.observe(info.durationMs / 1000);
    this.receivedBytes += info.bodyBytes;
    if (!TAKEN.has(outcome)) {
      this.refused += 1;
      if (outcome !== 'gone') this.refusals.add(outcome);
      if (this.tail.isWatched) this.tail.tell('refused', null, { code: outcome });
    }
    if (info.secret === null) return;
    const use = getOrMake(this.secrets, info.secret, () => ({ matches: 0, lastUsed: 0 }));
    use.matches += 1;
    use.lastUsed = this.#clock.now();
  }

  /** A fit event has come in, of whatever source. */
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
    // Nothing more is told of somebody whose data was erased.
    if (this.tail.isWatched) this.tail.tell(result.status, result.status === 'erased' ? null : event);
  }

  /** An event that is not fit to route has come in. */
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
    if (this.tail.isWatched) this.tail.tell('quarantined', event, { code: codesOf(reasons) });
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
      // A replayed event is as old as its archive: that says nothing about the sink.
      const ms = event.handling.replayId === undefined ? Math.max(0, now - event.receivedAt) : null;
      this.deliveries.add(event.seq, { sink, destination, at: now, outcome: 'delivered', reason: null });
      if (this.tail.isWatched) this.tail.tell('delivered', event, { sink, destination, ms });
      if (ms === null) continue;
      getOrMake(this.delivering, sink, () => new Distribution(SLOW_SECONDS)).observe(ms / 1000);
    }
  }

  retried(sink: string, { event, destination }: Delivery, reason: string | null): void {
    const at = this.#clock.now();
    this.deliveries.add(event.seq, { sink, destination, at, outcome: 'retried', reason });
    if (this.tail.isWatched) this.tail.tell('retried', event, { sink, destination, reason });
  }

  died(sink: string, { event, destination }: Delivery, code: string, reason: string): void {
    getOrMake(this.deadLetters, sink, () => new Tally(50)).add(code);
    if (this.tail.isWatched) this.tail.tell('dead', event, { sink, destination, code, reason });
  }

  /** @param error null when the new config is in force */
  reloaded(error: string | null): void {
    const { succeeded, failed, lastSuccess } = this.reloads;
    if (error !== null) {
      this.reloads = { succeeded, failed: failed + 1, lastSuccess, error };
      return;
    }
    this.reloads = { succeeded: succeeded + 1, failed, lastSuccess: this.#clock.now(), error: null };
    // Their indices mean something else now.
    this.secrets.clear();
    this.routes.clear();
  }

  #outcomes(source: string): Tally {
    return getOrMake(this.events, source, () => new Tally());
  }
}

function codesOf(reasons: readonly InvalidReason[]): string {
  return reasons.map(({ code }) => code).join(', ');
}

/** Everything a delivery can come to. */
const OUTCOMES: readonly string[] = [
  ...TAKEN,
  'gone',
  ...Object.entries(CATALOGUE).flatMap(([code, entry]) => ('status' in entry ? [code] : [])),
];
