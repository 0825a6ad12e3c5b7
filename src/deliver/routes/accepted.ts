import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';
import { matchesAll, parseTarget, type Redaction, type Route, type Target } from '../../core/route.ts';
import type { RouteEra, RouteRecord, Succession } from '../../core/route-record.ts';
import { getOrMake, getOrMakeAtMost } from '../../lib/get-or-make.ts';
import { compileRoutes, explicitTargets, type RouteTable, withRedactions } from './table.ts';

interface Era {
  readonly after: number;
  readonly table: RouteTable;
}

/** Senders choose the types, so their number must not grow the memory. */
const MAX_TYPES = 1000;

/** What routing needs of an event. */
export type Addressed = Pick<JournalEvent, 'seq' | 'type'> & {
  readonly handling: Pick<JournalEvent['handling'], 'only' | 'redactions' | 'without'>;
};

/**
 * Where each event goes.
 *
 * **The rule.** The sinks of an event are decided when it is accepted and never change: by the routes of that moment, or by the
 * targets that the event itself carries (retried, replayed). The journal keeps every table of routes with the seq it began at,
 * so that no sequence of reloads and restarts changes the answer. A sink that continues for another (`continues`) takes over
 * its cursor and, for all accepted so far, its name. A sink is removed only once it has settled all that is for it, or when a
 * person has made dead letters of the rest.
 *
 * A later table may change the destination inside a sink, and what is redacted: a waiting event goes to the destination that
 * the routes in force name in that sink, with their redactions. If they name none, it keeps its destination, with every
 * redaction that a route since then has had for its type and that sink, and with those that the sink has now.
 */
export class AcceptedRoutes {
  readonly #eras: readonly Era[];
  readonly #successions: readonly (Succession & { readonly upTo: number })[];
  /** Events after this seq are for sinks of the names of now. */
  readonly #lastRenamed: number;
  readonly #record: RouteRecord;
  readonly #newest: Era;
  /** Sinks by type, of events that no older table and no renaming concerns. */
  readonly #usual = new Map<string, ReadonlySet<string>>();
  readonly #now: RouteTable;
  /** Every route that the journal remembers, those in force among them, with the names that their sinks have now. */
  readonly ever: readonly Route[];
  readonly #isAnyRedacted: boolean;
  readonly #earlier = new Map<string, AcceptedRoutes | null>();
  #name: string | null = null;
  readonly #destinations = new Map<string, number>();

  constructor(record: RouteRecord) {
    this.#record = record;
    this.#eras = record.eras.map(({ after, tables: [routes] }) => ({ after, table: compileRoutes(routes) }));
    this.#successions = record.successors.map(({ upTo, from, to }) => ({ upTo: upTo ?? Infinity, from, to }));
    this.#lastRenamed = Math.max(-1, ...this.#successions.map(({ upTo }) => upTo));
    this.#newest = this.#eras.at(-1) ?? { after: 0, table: compileRoutes([]) };
    this.#now = this.#newest.table;
    this.ever = this.#eras.flatMap(({ after, table: { routes } }) =>
      routes.map((route) => ({ ...route, to: this.#renamed(route.to, after + 1) })),
    );
    this.#isAnyRedacted = this.ever.some(({ to }) => to.some(({ redactions }) => redactions !== undefined));
  }

  targetsOf({ seq, type, handling: { only, redactions, without } }: Addressed): readonly Target[] {
    if (only !== undefined) {
      const named = only.map((name) => withRedactions(parseTarget(name), without?.[name] ?? []));
      const targets = this.#renamed(named, seq);
      return explicitTargets(targets, type, this.#now, { ever: this.ever, before: redactions });
    }
    const era = this.#eraOf(seq);
    const then = this.#renamed(era.table.routesFor(type).targets, seq);
    if (era === this.#newest) return then;
    // Renamed, too: in `asOf`, the routes in force are those of an earlier time.
    const now = this.#renamed(this.#now.routesFor(type).targets, this.#newest.after + 1);
    return [...new Set(then.map(({ sink }) => sink))].flatMap((name) => {
      const inSink = ({ sink }: Target): boolean => sink === name;
      if (now.some(inSink)) return now.filter(inSink);
      const since = this.#since(era, type, inSink);
      return then
        .filter(inSink)
        .map((target) => withRedactions(target, [...(target.redactions ?? []), ...since]));
    });
  }

  /** Redactions of a type and a sink since an era, and all redactions that the sink has now. */
  #since(era: Era, type: string, inSink: (target: Target) => boolean): readonly Redaction[] {
    if (!this.#isAnyRedacted) return [];
    const later = this.#eras.slice(this.#eras.indexOf(era));
    return [
      ...later.flatMap(({ after, table }) => this.#renamed(table.routesFor(type).targets, after + 1)),
      ...this.#now.routes.flatMap(({ to }) => to),
    ].flatMap((target) => (inSink(target) ? (target.redactions ?? []) : []));
  }

  /** How many destinations of a sink the routes name, or have named. */
  destinationsIn(sink: string): number {
    return getOrMake(this.#destinations, sink, () => {
      const all = [...this.#now.routes, ...this.ever].flatMap(({ to }) => to);
      return new Set(all.flatMap((target) => (target.sink === sink ? [target.destination] : []))).size;
    });
  }

  /** Of the routes in force: a hash. */
  get name(): string {
    this.#name ??= nameOf(this.#record.eras.at(-1));
    return this.#name;
  }

  /** The routes while those of this name were in force; null when they are not known any more. */
  asOf(name: string): AcceptedRoutes | null {
    if (name === this.name) return this;
    return getOrMake(this.#earlier, name, () => {
      const { eras: all } = this.#record;
      const last = all.findLastIndex((era) => nameOf(era) === name);
      const eras = all.slice(0, last + 1);
      // When the next era began before an event came, nothing says in which of the two a sink was renamed.
      const isKnown = last !== -1 && all[last]?.after !== all[last + 1]?.after;
      return isKnown ? new AcceptedRoutes({ ...this.#record, eras }) : null;
    });
  }

  /** The seq after which the routes began that an event was accepted under; 0 for one that is older than all known routes. */
  eraOf(seq: number): number {
    const { after } = this.#eraOf(seq);
    return after < seq ? after : 0;
  }

  /** The names of the sinks that an event is for. */
  dueOf(event: Addressed): ReadonlySet<string> {
    const { seq, type, handling } = event;
    const find = (): ReadonlySet<string> => new Set(this.targetsOf(event).map(({ sink }) => sink));
    // Remembered by type, where nothing else decides: it is asked for millions of events.
    const isUsual = handling.only === undefined && seq > this.#newest.after && seq > this.#lastRenamed;
    return isUsual ? getOrMakeAtMost(this.#usual, type, find, MAX_TYPES) : find();
  }

  /** Whether every event that was ever accepted is for this sink. */
  takesAll(sink: string): boolean {
    return (
      !this.#record.forgotten &&
      this.#eras.every(
        ({ after, table: { routes } }) =>
          routes.some(matchesAll) &&
          routes.every(({ to }) => this.#renamed(to, after + 1).some((target) => target.sink === sink)),
      )
    );
  }

  /** The routes in force, without this sink. */
  routesWithout(sink: string): readonly Route[] {
    return this.#now.routes.map((route) => ({
      ...route,
      to: this.#renamed(route.to, Infinity).filter((target) => target.sink !== sink),
    }));
  }

  #eraOf(seq: number): Era {
    if (seq > this.#newest.after) return this.#newest;
    // An event that is older than all known eras goes by the oldest.
    return this.#eras.findLast(({ after }) => seq > after) ?? this.#eras[0] ?? this.#newest;
  }

  #renamed(targets: readonly Target[], seq: number): readonly Target[] {
    if (seq > this.#lastRenamed) return targets;
    return targets.map((target) => {
      let { sink } = target;
      for (const { upTo, from, to } of this.#successions) if (seq <= upTo && sink === from) sink = to;
      return sink === target.sink ? target : { ...target, sink };
    });
  }
}

function nameOf(era: RouteEra | undefined): string {
  // With `after`: the same tables may come again, and events accepted in between go by others.
  return hash('sha256', JSON.stringify(era ?? []), 'base64url').slice(0, 16);
}
