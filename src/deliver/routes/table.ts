import { getOrMakeAtMost } from '../../lib/get-or-make.ts';
import { matches, type Redaction, type Route, type Target } from '../../core/route.ts';

/** Where events of one type go. */
interface RouteDecision {
  /** Index of the route that decides; null when none matches and the events go nowhere. */
  readonly index: number | null;
  /** The prefix (or `*`) of that route that matches. */
  readonly match: string | null;
  readonly targets: readonly Target[];
}

export interface RouteTable {
  readonly routes: readonly Route[];
  /** The same object for the same type, as long as it is remembered. */
  routesFor(type: string): RouteDecision;
}

const NOWHERE: RouteDecision = { index: null, match: null, targets: [] };

/** Senders choose the types, so neither their number nor their length may grow the memory. */
const REMEMBERED_TYPES = 4096;
const REMEMBERED_LENGTH = 256;

export function compileRoutes(routes: readonly Route[]): RouteTable {
  const rules = routes.flatMap(({ match, to }, index) =>
    match.map((prefix) => ({
      prefix,
      decision: { index, match: prefix, targets: to } satisfies RouteDecision,
    })),
  );
  const remembered = new Map<string, RouteDecision>();
  return {
    routes,
    routesFor(type) {
      const decide = (): RouteDecision =>
        rules.find(({ prefix }) => matches(prefix, type))?.decision ?? NOWHERE;
      if (type.length > REMEMBERED_LENGTH) return decide();
      return getOrMakeAtMost(remembered, type, decide, REMEMBERED_TYPES);
    },
  };
}

/**
 * Targets named for an event by a retried dead letter or a replay, with the redactions that hold for them: those of the route that
 * leads events of this type to that target; when none does, all redactions of the sink, of the target and of the event before.
 * @param ever routes that redact for the sink, beside those of `now`
 */
export function explicitTargets(
  targets: readonly Target[],
  type: string,
  now: RouteTable,
  { ever = [], before = [] }: { ever?: readonly Route[]; before?: readonly Redaction[] | undefined } = {},
): readonly Target[] {
  const routes = [...now.routes, ...ever];
  const all = [...targets, ...routes.flatMap(({ to }) => to)];
  const isAnyRedacted = all.some(({ redactions }) => redactions !== undefined);
  if (!isAnyRedacted && before.length === 0) return targets;
  const byRoute = now.routesFor(type).targets;
  return targets.map((target) => {
    const { sink, destination } = target;
    const same = byRoute.find((other) => other.sink === sink && other.destination === destination);
    if (same !== undefined) return same;
    const ofSink = routes.flatMap(({ to }) =>
      to.flatMap((other) => (other.sink === sink ? (other.redactions ?? []) : [])),
    );
    return withRedactions(target, [...ofSink, ...(target.redactions ?? []), ...before]);
  });
}

/** The target with these redactions, each once; the same object without any. */
export function withRedactions(target: Target, redactions: readonly Redaction[]): Target {
  if (redactions.length === 0) return target;
  const distinct = new Map(redactions.map((redaction) => [JSON.stringify(redaction), redaction]));
  return { ...target, redactions: [...distinct.values()] };
}
