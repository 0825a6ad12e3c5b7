import type { JournalEvent } from '../../core/event.ts';
import type { DeadLetter, Journal, QuarantinedEvent } from '../../core/journal.ts';
import type { EventSummary, SinkStatus } from '../../core/operations.ts';
import type { Target } from '../../core/route.ts';
import type { FoundEvent, SearchQuery, SearchResult } from '../../core/search.ts';
import type { Attempt } from '../metrics/deliveries.ts';
import { summaryOf } from './operations.ts';

/** Where an event is now. Of one that has passed all its sinks only its dead letters say more than `settled`. */
export type EventState = 'waiting' | 'settled' | 'nowhere' | 'dead' | 'quarantined';

export interface SearchRequest extends SearchQuery {
  readonly state?: EventState | undefined;
}

export interface FoundSummary extends EventSummary {
  readonly state: EventState;
}

export interface SearchPage {
  /** Newest first; `key` is the place in the journal, or among what is set aside. */
  readonly events: readonly FoundSummary[];
  /** Fewer than all while the index is being built: the same question has a better answer soon. */
  readonly searched: number;
  readonly of: number;
  /** The same question with `before` this goes on; null when there is no more. */
  readonly next: number | null;
}

/** What one event has gone through, and where it stands at each sink. */
export interface EventWay {
  readonly event: EventSummary & { readonly source: string };
  readonly journaled_at: string | null;
  /** Of the distributed trace it belongs to; null when it is in none. */
  readonly trace_id: string | null;
  readonly replay_id: string | null;
  /** The route of today's config that its type falls under; null when none matches. */
  readonly route: { readonly index: number; readonly match: string } | null;
  readonly sinks: readonly SinkStep[];
}

export interface SinkStep {
  readonly sink: string;
  readonly destination: string | null;
  /** `passed`: the sink is past it; it was delivered, or is a dead letter that was dropped or retried since. */
  readonly state: 'delivered' | 'passed' | 'waiting' | 'dead';
  /** When it was delivered or given up; null when that was too long ago to be remembered, or has not happened. */
  readonly at: string | null;
  /** The last attempts that failed, oldest first, as far as they are remembered. */
  readonly retries: readonly { readonly at: string; readonly reason: string | null }[];
  /** Of a dead letter, or why the sink takes nothing now. */
  readonly reason: string | null;
}

export interface EventSearchOptions {
  readonly journal: Journal;
  readonly find: (query: SearchQuery) => Promise<SearchResult>;
  readonly targetsOf: (event: JournalEvent) => readonly Target[];
  /** The seq after which the routes began that an event was accepted under. */
  readonly eraOf: (seq: number) => number;
  readonly routeOf: (type: string) => { readonly index: number | null; readonly match: string | null };
  readonly sinks: () => readonly SinkStatus[];
  readonly attemptsOf: (seq: number) => readonly Attempt[];
}

/** Keys of what is set aside that are looked through at once: the journal writes nothing meanwhile. */
const SET_ASIDE = 10_000;
/** Milliseconds that one answer looks on for, where there may be nothing to be found for long. */
const LONGEST = 150;

/** Finds events for a person, and says what became of each. */
export class EventSearch {
  readonly #options: EventSearchOptions;

  constructor(options: EventSearchOptions) {
    this.#options = options;
  }

  async find({ state, ...query }: SearchRequest): Promise<SearchPage> {
    if (state === 'dead' || state === 'quarantined') return this.#findSetAside(state, query);
    const cursors = await this.#cursors();
    const slowest = Math.min(...cursors.values());
    // What all have passed does not wait; what stands behind the slowest is settled.
    const bounds = state === 'waiting' ? { after: Math.max(slowest, query.after ?? 0) } : {};
    const events: FoundSummary[] = [];
    const end = performance.now() + LONGEST;
    const others = new Others(state);
    let { before } = query;
    for (;;) {
      const after = Math.max(bounds.after ?? query.after ?? 0, others.era);
      const asked = { ...query, after, before, without: others.types };
      const { events: found, searched, of } = await this.#options.find(asked);
      for (const event of found) {
        const place = this.#stateOf(event, cursors);
        if (state === undefined || place === state)
          events.push({ ...summaryOf(event.seq, event, event.bytes), state: place });
        else others.note(event, place, this.#options.eraOf(event.seq));
      }
      const isEnd = found.length < query.limit;
      before = isEnd ? after + 1 : found.at(-1)?.seq;
      const shown = events.slice(0, query.limit);
      if (events.length > query.limit || (events.length === query.limit && !isEnd))
        return { events: shown, searched, of, next: shown.at(-1)?.key ?? null };
      // Types that were passed over in one era may be meant in the one before.
      if (isEnd && !others.leave()) return { events, searched, of, next: null };
      if (performance.now() > end) return { events, searched, of, next: before ?? null };
    }
  }

  /** Null when the journal does not have the event any more, or it was erased. */
  async way(seq: number): Promise<EventWay | null> {
    const { journal, find, targetsOf, routeOf, sinks, attemptsOf } = this.#options;
    const [event] = seq < 1 ? [] : await journal.read(seq - 1, { count: 1, bytes: 1 });
    if (event?.seq !== seq || event.handling.erased === true || event.id === '') return null;
    const [noted] = (await find({ after: seq - 1, before: seq + 1, limit: 1, journaled: true })).events;
    const cursors = await this.#cursors();
    const letters = await journal.listDeadLetters({ id: event.id, limit: 1000 }, false);
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
          letter: letters.find((one) => one.event.seq === seq && isSame(one, target)),
          attempts: attempts.filter((one) => isSame(one, target)),
          hasPassed: (cursors.get(target.sink) ?? 0) >= seq,
          trouble: status.get(target.sink)?.lastError ?? null,
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
    const targets = this.#options.targetsOf({ ...rest, headers: {}, body: NOTHING, handling });
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
    const end = performance.now() + LONGEST;
    const [newest] = await list({ before: query.before, limit: 1 });
    const from = (newest?.key ?? 0) + 1;
    const found: FoundSummary[] = [];
    let before = from;
    while (before > after + 1 && found.length < limit && performance.now() <= end) {
      const least = Math.max(after, before - SET_ASIDE - 1);
      const page = await list({ ...query, after: least, before, limit: limit - found.length });
      for (const one of page) {
        const event = 'event' in one ? one.event : one;
        found.push({ ...summaryOf(one.key, event, one.bodyBytes ?? 0), state });
      }
      // A page may be short of its limit, because its bytes are bounded.
      before = page.at(-1)?.key ?? least + 1;
    }
    const searched = from - before;
    return { events: found, searched, of: searched, next: before > after + 1 ? before : null };
  }
}

/**
 * Types of which all older events are in another state than the one that is looked for, as long as the same routes were in
 * force: ten million of them need not be read to find the one that is meant.
 */
class Others {
  readonly #wanted: EventState | undefined;
  readonly #types = new Set<string>();
  #era = 0;

  constructor(wanted: EventState | undefined) {
    this.#wanted = wanted;
  }

  get types(): readonly string[] {
    return [...this.#types];
  }

  /** The seq after which it holds; 0 for all. */
  get era(): number {
    return this.#types.size === 0 ? 0 : this.#era;
  }

  /** @param era of the event: of those that are noted one after the other it never rises */
  note({ type, only }: FoundEvent, state: EventState, era: number): void {
    // What waits may wait for a sink that has passed an older one.
    const isForAll = state !== 'waiting' || this.#wanted === 'nowhere';
    if (only !== undefined || !isForAll || this.#types.size >= MOST_OTHERS) return;
    if (era !== this.#era) this.#types.clear();
    this.#era = era;
    this.#types.add(type);
  }

  /** The era has been looked through. @returns false when there is none before it */
  leave(): boolean {
    const hasMore = this.era > 0;
    this.#types.clear();
    return hasMore;
  }
}

/** Senders choose the types. */
const MOST_OTHERS = 1000;

const NOTHING = Buffer.alloc(0);

type Addressed = { readonly sink: string; readonly destination: string | null };

function isSame(one: Addressed, other: Addressed): boolean {
  return one.sink === other.sink && one.destination === other.destination;
}

interface Known {
  readonly letter: DeadLetter | undefined;
  readonly attempts: readonly Attempt[];
  readonly hasPassed: boolean;
  readonly trouble: string | null;
}

function stepOf({ sink, destination }: Addressed, { letter, attempts, hasPassed, trouble }: Known): SinkStep {
  const retries = attempts
    .filter(({ outcome }) => outcome === 'retried')
    .map(({ at, reason }) => ({ at: new Date(at).toISOString(), reason }));
  const common = { sink, destination, retries };
  if (letter !== undefined) {
    const reason = `${letter.code}: ${letter.reason}`;
    return { ...common, state: 'dead', at: new Date(letter.diedAt).toISOString(), reason };
  }
  const done = attempts.findLast(({ outcome }) => outcome === 'delivered');
  if (done !== undefined) return { ...common, state: 'delivered', at: isoOf(done.at), reason: null };
  if (hasPassed) return { ...common, state: 'passed', at: null, reason: null };
  return { ...common, state: 'waiting', at: null, reason: trouble };
}

function isoOf(at: number | undefined): string | null {
  return at === undefined || at === 0 ? null : new Date(at).toISOString();
}
