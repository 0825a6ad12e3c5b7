import { formatTarget, leavingText, type Target } from '../../core/route.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { RouteTable } from './table.ts';

/** Where a config sends an event: targets as the config writes them, or `['quarantine']`; empty for nowhere. */
export type Fate = readonly string[];

export const QUARANTINED: Fate = ['quarantine'];

/** Events that two configs send to different targets. `from` and `to` have only the targets that differ. */
export interface Move {
  /** Targets that get them no more. */
  readonly from: Fate;
  readonly to: Fate;
  readonly events: number;
  /** A few types: one event of each, and how many events of the type move this way. */
  readonly examples: readonly { readonly type: string; readonly id: string; readonly events: number }[];
}

/** How many events a target gets under each of the two configs. */
export interface TargetCount {
  readonly target: string;
  readonly current: number;
  readonly next: number;
}

/** Types named for a move: senders choose the types, so their number must have a limit. */
const MAX_NAMED_TYPES = 5;

/** Where events of a type go by the routes. The same list comes back for the same decision. */
export function fatesBy(table: RouteTable): (type: string) => Fate {
  const fates = new WeakMap<object, Fate>();
  return (type) => {
    const { targets } = table.routesFor(type);
    return getOrMake(fates, targets, () => targets.map(fateAt));
  };
}

/** With its redactions: a redacted event is another fate than a whole one. */
function fateAt(target: Target): string {
  const leaving = leavingText(target);
  return leaving === null ? formatTarget(target) : `${formatTarget(target)} (${leaving})`;
}

/** Counts what changes between two configs, event by event; its memory grows with the configs only. */
export class Comparison {
  events = 0;
  changed = 0;
  readonly #moves = new Map<string, OpenMove>();
  readonly #targets = new Map<string, { current: number; next: number }>();

  add(event: { readonly type: string; readonly id: string }, current: Fate, next: Fate): void {
    this.events += 1;
    for (const target of current) this.#target(target).current += 1;
    for (const target of next) this.#target(target).next += 1;
    const from = current.filter((target) => !next.includes(target));
    const to = next.filter((target) => !current.includes(target));
    if (from.length === 0 && to.length === 0) return;
    this.changed += 1;
    this.#move(from, to).add(event);
  }

  /** The largest first. */
  moves(): Move[] {
    return Array.from(this.#moves.values(), (move) => move.finished()).sort((a, b) => b.events - a.events);
  }

  /** By name, without targets that get nothing under both configs. */
  targets(): TargetCount[] {
    return Array.from(this.#targets, ([target, counts]) => ({ target, ...counts })).sort((a, b) =>
      a.target < b.target ? -1 : 1,
    );
  }

  #target(name: string): { current: number; next: number } {
    return getOrMake(this.#targets, name, () => ({ current: 0, next: 0 }));
  }

  #move(from: Fate, to: Fate): OpenMove {
    return getOrMake(this.#moves, JSON.stringify([from, to]), () => new OpenMove(from, to));
  }
}

class OpenMove {
  readonly #from: Fate;
  readonly #to: Fate;
  readonly #types = new Map<string, { id: string; events: number }>();
  #events = 0;

  constructor(from: Fate, to: Fate) {
    this.#from = from;
    this.#to = to;
  }

  add({ type, id }: { readonly type: string; readonly id: string }): void {
    this.#events += 1;
    const known = this.#types.get(type);
    if (known !== undefined) known.events += 1;
    else if (this.#types.size < MAX_NAMED_TYPES) this.#types.set(type, { id, events: 1 });
  }

  finished(): Move {
    const examples = Array.from(this.#types, ([type, { id, events }]) => ({ type, id, events }));
    return { from: this.#from, to: this.#to, events: this.#events, examples };
  }
}
