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
  readonly examples: readonly Example[];
}

/** One event of a type, and how many events of the type move this way. */
interface Example {
  readonly type: string;
  readonly id: string;
  events: number;
}

interface OpenMove extends Omit<Move, 'events' | 'examples'> {
  events: number;
  readonly types: Map<string, Example>;
}

/** How many events a target gets under each of the two configs. */
export interface TargetCount {
  readonly target: string;
  current: number;
  next: number;
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
  readonly #targets = new Map<string, TargetCount>();

  add({ type, id }: Omit<Example, 'events'>, current: Fate, next: Fate): void {
    this.events += 1;
    for (const target of current) this.#target(target).current += 1;
    for (const target of next) this.#target(target).next += 1;
    const from = current.filter((target) => !next.includes(target));
    const to = next.filter((target) => !current.includes(target));
    if (from.length === 0 && to.length === 0) return;
    this.changed += 1;
    const makeMove = (): OpenMove => ({ from, to, events: 0, types: new Map() });
    const move = getOrMake(this.#moves, JSON.stringify([from, to]), makeMove);
    move.events += 1;
    const known = move.types.get(type);
    if (known !== undefined) known.events += 1;
    else if (move.types.size < MAX_NAMED_TYPES) move.types.set(type, { type, id, events: 1 });
  }

  /** The largest first. */
  moves(): Move[] {
    return Array.from(this.#moves.values(), ({ types, ...move }) => ({
      ...move,
      examples: [...types.values()],
    })).sort((a, b) => b.events - a.events);
  }

  /** By name, without targets that get nothing under both configs. */
  targets(): TargetCount[] {
    return [...this.#targets.values()].sort((a, b) => (a.target < b.target ? -1 : 1));
  }

  #target(target: string): TargetCount {
    return getOrMake(this.#targets, target, () => ({ target, current: 0, next: 0 }));
  }
}
