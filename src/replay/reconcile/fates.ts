import type { EventHead, JournalAccount } from '../../core/journal.ts';
import type { AcceptedRoutes } from '../../deliver/routes/accepted.ts';
import type { Due, EventIds } from './event-ids.ts';
import type { State } from './id-counter.ts';

/** What became of an event, by the journal. */
export interface Fate {
  /** No route led it to a sink. */
  readonly isNowhere: boolean;
  readonly sinks: readonly string[];
  readonly due: Due;
  /** Sinks that it waits for and that are not in the config. */
  readonly abandoned: readonly string[];
}

type Sinks = ReturnType<AcceptedRoutes['dueOf']>;

interface CachedFate extends Fate {
  readonly of: Sinks;
  /** The last seq that it is valid for. */
  readonly upTo: number;
}

/** Most cached types: senders choose them. */
const MOST_TYPES = 1000;

/** Finds the fates of events in the order of their seqs. Most have the fate of the last event of their type. */
export class Fates {
  readonly #accepted: AcceptedRoutes;
  readonly #configured: ReadonlySet<string>;
  readonly #ids: EventIds;
  readonly #cursors: ReadonlyMap<string, number>;
  readonly #started: ReadonlyMap<string, number>;
  readonly #known = new Map<string, CachedFate>();

  constructor(
    { cursors, started }: Pick<JournalAccount, 'cursors' | 'started'>,
    accepted: AcceptedRoutes,
    configured: ReadonlySet<string>,
    ids: EventIds,
  ) {
    this.#accepted = accepted;
    this.#configured = configured;
    this.#ids = ids;
    this.#cursors = new Map(cursors);
    this.#started = new Map(started);
  }

  of(head: EventHead): Fate {
    const { seq, type, only } = head;
    const of = this.#accepted.dueOf({ seq, type, handling: only === null ? {} : { only } });
    if (only !== null || head.waits !== undefined || head.mayBeRetry !== undefined)
      return this.#fateOf(head, of);
    let known = this.#known.get(type);
    if (known === undefined || known.of !== of || seq > known.upTo) {
      known = { of, upTo: this.#nextChange(seq, of), ...this.#fateOf(head, of) };
      if (this.#known.size >= MOST_TYPES) this.#known.clear();
      this.#known.set(type, known);
    }
    return known;
  }

  /** The next seq at which a sink was added, or has its cursor. */
  #nextChange(seq: number, sinks: Sinks): number {
    const ends = [...sinks.keys()].flatMap((sink) => [
      this.#started.get(sink) ?? 0,
      this.#cursors.get(sink) ?? 0,
    ]);
    return Math.min(...ends.filter((end) => end >= seq));
  }

  #fateOf({ seq, only, waits, mayBeRetry: mayRepeat = only !== null }: EventHead, of: Sinks): Fate {
    const states: [sink: string, state: State][] = [];
    const abandoned: string[] = [];
    for (const sink of of) {
      // A new sink starts at the journal's end.
      if (only === null && seq <= (this.#started.get(sink) ?? 0)) continue;
      const isWaiting = waits?.includes(sink) ?? seq > (this.#cursors.get(sink) ?? 0);
      if (isWaiting && !this.#configured.has(sink)) abandoned.push(sink);
      states.push([sink, isWaiting ? 'waiting' : 'settled']);
    }
    const due = this.#ids.due(mayRepeat, states);
    return { isNowhere: of.size === 0, sinks: states.map(([sink]) => sink), due, abandoned };
  }
}
