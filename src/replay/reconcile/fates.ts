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

interface CachedFate extends Fate {
  readonly of: ReadonlySet<string>;
  /** The last seq that it is valid for. */
  readonly upTo: number;
}

/** Most cached types: senders choose them. */
const MOST_TYPES = 1000;

/**
 * @returns a function that finds the fates of events in the order of their seqs; most have the fate of the last event of their
 *   type
 */
export function fatesBy(
  account: Pick<JournalAccount, 'cursors' | 'started'>,
  accepted: AcceptedRoutes,
  configured: ReadonlySet<string>,
  ids: EventIds,
): (head: EventHead) => Fate {
  const cursors = new Map(account.cursors);
  const started = new Map(account.started);
  const cached = new Map<string, CachedFate>();
  const fateOf = (head: EventHead, of: ReadonlySet<string>): Fate => {
    const { seq, only, waits, mayBeRetry: mayRepeat = only !== null } = head;
    const states: [sink: string, state: State][] = [];
    const abandoned: string[] = [];
    for (const sink of of) {
      // A new sink starts at the journal's end.
      if (only === null && seq <= (started.get(sink) ?? 0)) continue;
      const isWaiting = waits?.includes(sink) ?? seq > (cursors.get(sink) ?? 0);
      if (isWaiting && !configured.has(sink)) abandoned.push(sink);
      states.push([sink, isWaiting ? 'waiting' : 'settled']);
    }
    const due = ids.due(mayRepeat, states);
    return { isNowhere: of.size === 0, sinks: states.map(([sink]) => sink), due, abandoned };
  };
  return (head) => {
    const { seq, type, only } = head;
    const of = accepted.dueOf({ seq, type, handling: only === null ? {} : { only } });
    if (only !== null || head.waits !== undefined || head.mayBeRetry !== undefined) return fateOf(head, of);
    let known = cached.get(type);
    if (known === undefined || known.of !== of || seq > known.upTo) {
      // The next seq at which a sink was added, or has its cursor.
      const ends = [...of].flatMap((sink) => [started.get(sink) ?? 0, cursors.get(sink) ?? 0]);
      known = { of, upTo: Math.min(...ends.filter((end) => end >= seq)), ...fateOf(head, of) };
      if (cached.size >= MOST_TYPES) cached.clear();
      cached.set(type, known);
    }
    return known;
  };
}
