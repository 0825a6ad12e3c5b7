import type { Route, Target } from '../../core/route.ts';

/** Where events of one type go. */
interface RouteDecision {
  /** Index of the route that decided; `null` when none matches and the events go nowhere. */
  readonly index: number | null;
  /** The prefix (or `*`) of that route that matched. */
  readonly match: string | null;
  readonly targets: readonly Target[];
}

export interface RouteTable {
  readonly routes: readonly Route[];
  routesFor(type: string): RouteDecision;
}

const NOWHERE: RouteDecision = { index: null, match: null, targets: [] };

/** Senders choose the types, so neither their number nor their length may grow the memory. */
const REMEMBERED_TYPES = 4096;
const REMEMBERED_LENGTH = 256;

/** Compiles routes into a lookup. Decisions are remembered per type; the same object comes back for the same type. */
export function compileRoutes(routes: readonly Route[]): RouteTable {
  const rules = routes.flatMap(({ match, to }, index) =>
    match.map((prefix) => ({
      start: prefix === '*' ? '' : prefix,
      decision: { index, match: prefix, targets: to } satisfies RouteDecision,
    })),
  );
  const remembered = new Map<string, RouteDecision>();
  return {
    routes,
    routesFor(type) {
      const known = remembered.get(type);
      if (known !== undefined) return known;
      const decision = rules.find(({ start }) => type.startsWith(start))?.decision ?? NOWHERE;
      if (type.length <= REMEMBERED_LENGTH) {
        if (remembered.size >= REMEMBERED_TYPES) remembered.clear();
        remembered.set(type, decision);
      }
      return decision;
    },
  };
}
