import type { EventHead, JournalAccount } from '../core/journal.ts';
import { parseTarget, type Route } from '../core/route.ts';

/** What a sink should have of an event. `perhaps`: the routes have changed, and only some of them name it. */
export type Due = 'due' | 'perhaps' | 'not_due';

/** A table of routes, compiled by whoever may. */
export type SinksFor = (type: string) => ReadonlySet<string>;

/**
 * Says which sinks an event is for. What was settled before a change of routes went by the routes before it, what
 * waited went by those after it; where the two differ, nothing can be held against a sink.
 */
export class Routing {
  readonly #now: SinksFor;
  readonly #earlier: readonly { readonly upTo: number; readonly before: SinksFor }[];
  readonly #started: ReadonlyMap<string, number>;

  constructor(
    routes: readonly Route[],
    account: JournalAccount,
    compile: (routes: readonly Route[]) => SinksFor,
  ) {
    this.#now = compile(routes);
    this.#earlier = pastOf(account.routes).map(({ upTo, before }) => ({ upTo, before: compile(before) }));
    this.#started = new Map(account.started);
  }

  dueAt(sink: string, { seq, type, only }: Pick<EventHead, 'seq' | 'type' | 'only'>): Due {
    if (only !== null) return only.some((target) => parseTarget(target).sink === sink) ? 'due' : 'not_due';
    // A sink that was added later begins at the journal's end of then.
    if (seq <= (this.#started.get(sink) ?? 0)) return 'not_due';
    const tables = [
      this.#now,
      ...this.#earlier.filter(({ upTo }) => seq <= upTo).map(({ before }) => before),
    ];
    const naming = tables.filter((table) => table(type).has(sink)).length;
    if (naming === 0) return 'not_due';
    return naming === tables.length ? 'due' : 'perhaps';
  }

  /** True when every event there ever was is for this sink, whatever its type. */
  takesAll(sink: string, routes: readonly Route[]): boolean {
    return (
      this.#earlier.length === 0 &&
      (this.#started.get(sink) ?? 0) === 0 &&
      routes.some(({ match }) => match.includes('*')) &&
      routes.every(({ to }) => to.some((target) => target.sink === sink))
    );
  }
}

interface PastRoutes {
  readonly upTo: number;
  readonly before: readonly Route[];
}

/** As the receiver notes them; a note of another shape counts as none. */
function pastOf(text: string | null): readonly PastRoutes[] {
  if (text === null) return [];
  const { changes, past } = JSON.parse(text) as { changes?: PastRoutes[]; past?: PastRoutes[] };
  return [...(past ?? []), ...(changes ?? [])];
}
