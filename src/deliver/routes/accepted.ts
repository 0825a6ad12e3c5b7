import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';
import type { Redaction } from '../../core/redaction.ts';
import { parseTarget, type Route, type Target } from '../../core/route.ts';
import type { RouteEra, RouteRecord, Succession } from '../../core/route-record.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { distinct, explicitTargets } from './explicit.ts';
import { compileRoutes, type RouteTable } from './table.ts';

interface Era {
  readonly after: number;
  readonly table: RouteTable;
}

/** Senders choose types, so what is kept of them must have an end. */
const MOST_TYPES = 1000;

/** What a decision needs of an event. */
export type Addressed = Pick<JournalEvent, 'seq' | 'type'> & {
  readonly handling: Pick<JournalEvent['handling'], 'only' | 'redactions' | 'without'>;
};

/**
 * Where each event goes.
 *
 * **The rule.** The sinks of an event are decided once and for good, when it is accepted: by the routes of that moment, or
 * by the targets the event itself carries (retried, replayed). The journal keeps every table of routes with the seq it
 * began at, so that no sequence of reloads and restarts changes the answer. A sink that continues for another
 * (`continues`) takes over its cursor and, for all accepted so far, its name. A sink can be taken out only once it has
 * passed all that is for it, or when a person has made dead letters of the rest. What a later table may change is the
 * place inside a sink, and what leaves for it: an event that waits goes to the destination that today's routes name in that
 * sink, if they do, and goes without what they say. If they do not, it goes without what any route since then has said for
 * its type and that sink, and without what today's say for the sink.
 */
export class AcceptedRoutes {
  readonly #eras: readonly Era[];
  readonly #heirs: readonly (Succession & { readonly upTo: number })[];
  /** Nothing later concerns a sink of another name. */
  readonly #lastHeir: number;
  readonly #record: RouteRecord;
  readonly #newest: Era;
  /** By type, what is said of events that no older table and no renaming concerns. */
  readonly #usual = new Map<string, ReadonlySet<string>>();
  readonly #now: RouteTable;
  /** Routes of earlier eras, with the names that their sinks have now. */
  readonly #ever: readonly Route[];
  readonly #isAnyRedacted: boolean;
  readonly #earlier = new Map<string, AcceptedRoutes | null>();
  #name: string | null = null;
  readonly #destinations = new Map<string, number>();

  constructor(record: RouteRecord) {
    this.#record = record;
    this.#eras = record.eras.map(({ after, tables: [routes] }) => ({ after, table: compileRoutes(routes) }));
    this.#heirs = record.heirs.map(({ upTo, ...heir }) => ({ ...heir, upTo: upTo ?? Infinity }));
    this.#lastHeir = Math.max(-1, ...this.#heirs.map(({ upTo }) => upTo));
    this.#newest = this.#eras.at(-1) ?? { after: 0, table: compileRoutes([]) };
    this.#now = this.#newest.table;
    this.#ever = this.#eras.flatMap(({ after, table: { routes } }) =>
      routes.map((route) => ({ ...route, to: this.#renamed(route.to, after + 1) })),
    );
    this.#isAnyRedacted = this.#ever.some(({ to }) => to.some(({ redactions }) => redactions !== undefined));
  }

  /** Every route there was while the journal remembers, those of now among them. */
  get ever(): readonly Route[] {
    return this.#ever;
  }

  targetsOf({ seq, type, handling: { only, redactions, without } }: Addressed): readonly Target[] {
    if (only !== undefined) {
      const named = only.map((name) => withRedactions(parseTarget(name), without?.[name]));
      const targets = this.#renamed(named, seq);
      return explicitTargets(targets, type, this.#now, { ever: this.#ever, before: redactions });
    }
    const era = this.#eraOf(seq);
    const then = this.#renamed(era.table.routesFor(type).targets, seq);
    if (era === this.#newest) return then;
    // By the names of now, too: these may be the routes of an earlier time.
    const now = this.#renamed(this.#now.routesFor(type).targets, this.#newest.after + 1);
    return [...new Set(then.map(({ sink }) => sink))].flatMap((name) => {
      const inSink = ({ sink }: Target): boolean => sink === name;
      if (now.some(inSink)) return now.filter(inSink);
      const since = this.#since(era, type, inSink);
      return then.filter(inSink).map((target) => {
        const all = distinct([...(target.redactions ?? []), ...since]);
        return all.length === 0 ? target : { ...target, redactions: all };
      });
    });
  }

  /** What has been said of a type and a sink since an era, and is said of the sink today. */
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
      const all = [...this.#now.routes, ...this.#ever].flatMap(({ to }) => to);
      return new Set(all.flatMap((target) => (target.sink === sink ? [target.destination] : []))).size;
    });
  }

  /** Of the routes of now: the same for the same ones. */
  get name(): string {
    this.#name ??= nameOf(this.#record.eras.at(-1));
    return this.#name;
  }

  /** What it was while those of this name were the routes of now; null when it is not known any more. */
  asOf(name: string): AcceptedRoutes | null {
    if (name === this.name) return this;
    if (!this.#earlier.has(name)) {
      const { eras: all } = this.#record;
      const last = all.findLastIndex((era) => nameOf(era) === name);
      const eras = all.slice(0, last + 1);
      // Where another followed before anything came, nothing says which of the two a sink was renamed in.
      const isKnown = last !== -1 && all[last]?.after !== all[last + 1]?.after;
      this.#earlier.set(name, isKnown ? new AcceptedRoutes({ ...this.#record, eras }) : null);
    }
    return this.#earlier.get(name) ?? null;
  }

  /** The seq after which the routes began that an event was accepted under; 0 for what is older than all that is known. */
  eraOf(seq: number): number {
    const { after } = this.#eraOf(seq);
    return after < seq ? after : 0;
  }

  /** The sinks an event is for: the same set for events of one type, as long as nothing else decides. */
  dueOf(event: Addressed): ReadonlySet<string> {
    const { seq, type, handling } = event;
    // For most it follows from the type alone, and it is asked for millions.
    const isUsual = handling.only === undefined && seq > this.#newest.after && seq > this.#lastHeir;
    if (!isUsual) return this.#dueOf(event);
    let due = this.#usual.get(type);
    if (due === undefined) {
      due = this.#dueOf(event);
      if (this.#usual.size < MOST_TYPES) this.#usual.set(type, due);
    }
    return due;
  }

  #dueOf(event: Addressed): ReadonlySet<string> {
    return new Set(this.targetsOf(event).map(({ sink }) => sink));
  }

  /** True when every event there ever was is for this sink, whatever its type. */
  takesAll(sink: string): boolean {
    return (
      !this.#record.forgotten &&
      this.#eras.every(
        ({ after, table: { routes } }) =>
          routes.some(({ match }) => match.includes('*')) &&
          routes.every(({ to }) => this.#renamed(to, after + 1).some((target) => target.sink === sink)),
      )
    );
  }

  /** The routes of now, without those to this sink. */
  routesWithout(sink: string): readonly Route[] {
    return this.#now.routes.map((route) => ({
      ...route,
      to: this.#renamed(route.to, Infinity).filter((target) => target.sink !== sink),
    }));
  }

  #eraOf(seq: number): Era {
    if (seq > this.#newest.after) return this.#newest;
    // What is older than all that is known goes by the oldest that is.
    return this.#eras.findLast(({ after }) => seq > after) ?? this.#eras[0] ?? this.#newest;
  }

  #renamed(targets: readonly Target[], seq: number): readonly Target[] {
    if (seq > this.#lastHeir) return targets;
    return targets.map((target) => {
      let { sink } = target;
      for (const { upTo, from, to } of this.#heirs) if (seq <= upTo && sink === from) sink = to;
      return sink === target.sink ? target : { ...target, sink };
    });
  }
}

function nameOf(era: RouteEra | undefined): string {
  // With where it begins: the same tables may come again, and what was accepted in between goes by others.
  return hash('sha256', JSON.stringify(era ?? []), 'base64url').slice(0, 16);
}

function withRedactions(target: Target, redactions: readonly Redaction[] | undefined): Target {
  return redactions === undefined ? target : { ...target, redactions };
}
