import type { JournalEvent } from '../../core/event.ts';
import type { DeadLetter, Journal, QuarantinedEvent } from '../../core/journal.ts';
import type { EventSummary, SinkStatus } from '../../core/operations.ts';
import type { Target } from '../../core/route.ts';
import type { FoundEvent, SearchQuery, SearchResult } from '../../core/search.ts';
import type { RecentAttempt } from '../metrics/recent.ts';
import { summaryOf } from './operations.ts';

/** State of an event. `settled`: all its sinks have passed it, delivered or as a dead letter. */
export type EventState = 'waiting' | 'settled' | 'nowhere' | 'dead' | 'quarantined';

export interface SearchRequest extends SearchQuery {
  readonly state?: EventState | undefined;
}

export interface FoundSummary extends EventSummary {
  readonly state: EventState;
}

export interface SearchPage {
  /** Newest first; `key` is the seq, or the key in quarantine or dead letters. */
  readonly events: readonly FoundSummary[];
  /** Events searched, of all; fewer while the index is being built. */
  readonly searched: number;
  readonly of: number;
  /** `before` of the next page; null after the last. */
  readonly next: number | null;
}

/** What happened to an event, and its state at each sink. */
export interface EventTimeline {
  readonly event: EventSummary & { readonly source: string };
  readonly journaled_at: string | null;
  /** Null without a distributed trace. */
  readonly trace_id: string | null;
  readonly replay_id: string | null;
  /** The route of the current config that matches its type; null without one. */
  readonly route: { readonly index: number; readonly match: string } | null;
  readonly sinks: readonly SinkStep[];
}

export interface SinkStep {
  readonly sink: string;
  readonly destination: string | null;
  /** `passed`: delivered, or a dead letter that was dropped or retried since. */
  readonly state: 'delivered' | 'passed' | 'waiting' | 'dead';
  /** When it was delivered or became a dead letter; null when that is not remembered, or has not happened. */
  readonly at: string | null;
  /** Remembered failed attempts, oldest first. */
  readonly retries: readonly { readonly at: string; readonly reason: string | null }[];
  /** Reason of a dead letter, or the last error of the sink. */
  readonly reason: string | null;
}

export interface EventSearchOptions {
  readonly journal: Journal;
  readonly find: (query: SearchQuery) => Promise<SearchResult>;
  readonly targetsOf: (event: JournalEvent) => readonly Target[];
  /** The seq after which the routes of an event came into force. */
  readonly eraOf: (seq: number) => number;
  readonly routeOf: (type: string) => { readonly index: number | null; readonly match: string | null };
  readonly sinks: () => readonly SinkStatus[];
  readonly attemptsOf: (seq: number) => readonly RecentAttempt[];
}

/** Keys of quarantine or dead letters that one query searches: the journal does not write during it. */
const KEYS_AT_ONCE = 10_000;
/** Milliseconds of one search; the page then ends early. */
const LONGEST_MS = 150;

/** Finds events for the console, with their states. */
export class EventSearch {
  readonly #options: EventSearchOptions;

  constructor(options: EventSearchOptions) {
    this.#options = options;
  }

  async find({ state, ...query }: SearchRequest): Promise<SearchPage> {
    if (state === 'dead' || state === 'quarantined') return this.#findSetAside(state, query);
    const cursors = await this.#cursors();
    const slowest = Math.min(...cursors.values());
    // Events that the slowest sink has passed do not wait.
    const bounds = state === 'waiting' ? { after: Math.max(slowest, query.after ?? 0) } : {};
    const events: FoundSummary[] = [];
    const end = performance.now() + LONGEST_MS;
    const skipped = new SkippedTypes(state);
    let { before } = query;
    for (;;) {
      const after = Math.max(bounds.after ?? query.after ?? 0, skipped.era);
      const asked = { ...query, after, before, without: skipped.types };
      const { events: found, searched, of } = await this.#options.find(asked);
      for (const event of found) {
        const now = this.#stateOf(event, cursors);
        if (state === undefined || now === state)
          events.push({ ...summaryOf(event.seq, event, event.bytes), state: now });
        else skipped.add(event, now, this.#options.eraOf(event.seq));
      }
      const isEnd = found.length < query.limit;
      before = isEnd ? after + 1 : found.at(-1)?.seq;
      const shown = events.slice(0, query.limit);
      if (events.length > query.limit || (events.length === query.limit && !isEnd))
        return { events: shown, searched, of, next: shown.at(-1)?.key ?? null };
      // A skipped type can match in the era before.
      if (isEnd && !skipped.endEra()) return { events, searched, of, next: null };
      if (performance.now() > end) return { events, searched, of, next: before ?? null };
    }
  }

  /** Null when the journal no longer has the event, or it was erased. */
  async timeline(seq: number): Promise<EventTimeline | null> {
    const { journal, find, targetsOf, routeOf, sinks, attemptsOf } = this.#options;
    const [event] = seq < 1 ? [] : await journal.read(seq - 1, { count: 1, bytes: 1 });
    if (event?.seq !== seq || event.handling.erased === true || event.id === '') return null;
    const [noted] = (await find({ after: seq - 1, before: seq + 1, limit: 1, journaled: true })).events;
    const cursors = await this.#cursors();
    const dead = await journal.listDeadLetters({ id: event.id, limit: 1000 }, false);
    const attempts = attemptsOf(seq);
    const status = new Map(sinks().map((one) => [one.sink, one]));
    const { index, match } = routeOf(event.type);
    return {
      event: { ...summaryOf(seq, event, event.body.length), source: event.source },
      journaled_at: isoOf(noted?.journaledAt),
      trace_id: event.handling.trace?.traceparent.slice(3, 35) ?? null,
      replay_id: event.handling.replayId ?? null,
      route: index === null || match === null ? null : { index, match },
      sinks: targetsOf(event).map((target) =>
        stepOf(target, {
          dead: dead.find((one) => one.event.seq === seq && isSame(one, target)),
          attempts: attempts.filter((one) => isSame(one, target)),
          hasPassed: (cursors.get(target.sink) ?? 0) >= seq,
          lastError: status.get(target.sink)?.lastError ?? null,
        }),
      ),
    };
  }

  async #cursors(): Promise<ReadonlyMap<string, number>> {
    return new Map(await this.#options.journal.cursors());
  }

  #stateOf(event: FoundEvent, cursors: ReadonlyMap<string, number>): EventState {
    const { only, ...rest } = event;
    const handling = only === undefined ? {} : { only };
    const targets = this.#options.targetsOf({ ...rest, headers: {}, body: NO_BODY, handling });
    if (targets.length === 0) return 'nowhere';
    return targets.some(({ sink }) => (cursors.get(sink) ?? 0) < event.seq) ? 'waiting' : 'settled';
  }

  async #findSetAside(state: 'dead' | 'quarantined', query: SearchQuery): Promise<SearchPage> {
    const { journal } = this.#options;
    const list = (newestOf: SearchQuery): Promise<readonly (DeadLetter | QuarantinedEvent)[]> =>
      state === 'dead'
        ? journal.listDeadLetters({ newestOf }, false)
        : journal.listQuarantine({ newestOf }, false);
    const { after = 0, limit } = query;
    const end = performance.now() + LONGEST_MS;
    const [newest] = await list({ before: query.before, limit: 1 });
    const from = (newest?.key ?? 0) + 1;
    const found: FoundSummary[] = [];
    let before = from;
    while (before > after + 1 && found.length < limit && performance.now() <= end) {
      const least = Math.max(after, before - KEYS_AT_ONCE - 1);
      const page = await list({ ...query, after: least, before, limit: limit - found.length });
      for (const one of page) {
        const event = 'event' in one ? one.event : one;
        found.push({ ...summaryOf(one.key, event, one.bodyBytes ?? 0), state });
      }
      // A page can be shorter than its limit, because its bytes are limited too.
      before = page.at(-1)?.key ?? least + 1;
    }
    const searched = from - before;
    return { events: found, searched, of: searched, next: before > after + 1 ? before : null };
  }
}

/**
 * Types whose older events all have another state than the wanted one, while the same routes were in force (an era). The search
 * skips them, so that it does not read millions of events to find one.
 */
class SkippedTypes {
  readonly #wanted: EventState | undefined;
  readonly #types = new Set<string>();
  #era = 0;

  constructor(wanted: EventState | undefined) {
    this.#wanted = wanted;
  }

  get types(): readonly string[] {
    return [...this.#types];
  }

  /** The seq at which the era begins; 0 without types. */
  get era(): number {
    return this.#types.size === 0 ? 0 : this.#era;
  }

  /** @param era of the event; it never rises, because events come newest first */
  add({ type, only }: FoundEvent, state: EventState, era: number): void {
    // Behind a waiting event there can be older ones that its sink has passed.
    const isForAll = state !== 'waiting' || this.#wanted === 'nowhere';
    if (only !== undefined || !isForAll || this.#types.size >= MOST_SKIPPED) return;
    if (era !== this.#era) this.#types.clear();
    this.#era = era;
    this.#types.add(type);
  }

  /** The era was searched. @returns false when there is no earlier one */
  endEra(): boolean {
    const hasMore = this.era > 0;
    this.#types.clear();
    return hasMore;
  }
}

/** A limit, because senders choose the types. */
const MOST_SKIPPED = 1000;

const NO_BODY = Buffer.alloc(0);

type Addressed = { readonly sink: string; readonly destination: string | null };

function isSame(one: Addressed, other: Addressed): boolean {
  return one.sink === other.sink && one.destination === other.destination;
}

interface TargetState {
  readonly dead: DeadLetter | undefined;
  readonly attempts: readonly RecentAttempt[];
  readonly hasPassed: boolean;
  readonly lastError: string | null;
}

function stepOf(
  { sink, destination }: Addressed,
  { dead, attempts, hasPassed, lastError }: TargetState,
): SinkStep {
  const retries = attempts
    .filter(({ outcome }) => outcome === 'retried')
    .map(({ at, reason }) => ({ at: new Date(at).toISOString(), reason }));
  const common = { sink, destination, retries };
  if (dead !== undefined)
    return { ...common, state: 'dead', at: isoOf(dead.diedAt), reason: `${dead.code}: ${dead.reason}` };
  const done = attempts.findLast(({ outcome }) => outcome === 'delivered');
  if (done !== undefined) return { ...common, state: 'delivered', at: isoOf(done.at), reason: null };
  if (hasPassed) return { ...common, state: 'passed', at: null, reason: null };
  return { ...common, state: 'waiting', at: null, reason: lastError };
}

function isoOf(at: number | undefined): string | null {
  return at === undefined || at === 0 ? null : new Date(at).toISOString();
}
