import type { Redaction } from '../../core/redaction.ts';
import type { Route, Target } from '../../core/route.ts';
import type { RouteTable } from './table.ts';

/**
 * Targets that were named for an event without asking its route: by a retried dead letter, or by a replay. What leaves is
 * decided here all the same: by the route that leads events of this type to that target; when none does, by every
 * redaction there is for its sink, by those it comes with, and by what the event has had to go without before.
 * @param ever routes that may say something about the sink beside those of `now`
 */
export function explicitTargets(
  targets: readonly Target[],
  type: string,
  now: RouteTable,
  { ever = [], before = [] }: { ever?: readonly Route[]; before?: readonly Redaction[] | undefined } = {},
): readonly Target[] {
  const routes = [...now.routes, ...ever];
  const isAny = [targets, ...routes.map(({ to }) => to)]
    .flat()
    .some(({ redactions }) => redactions !== undefined);
  if (!isAny && before.length === 0) return targets;
  const byRoute = now.routesFor(type).targets;
  return targets.map((target) => {
    const { sink, destination } = target;
    const same = byRoute.find((other) => other.sink === sink && other.destination === destination);
    if (same !== undefined) return same;
    const all = routes.flatMap(({ to }) =>
      to.flatMap((other) => (other.sink === sink ? (other.redactions ?? []) : [])),
    );
    const redactions = distinct([...all, ...(target.redactions ?? []), ...before]);
    return redactions.length === 0 ? target : { ...target, redactions };
  });
}

export function distinct(redactions: readonly Redaction[]): readonly Redaction[] {
  return [...new Map(redactions.map((redaction) => [JSON.stringify(redaction), redaction])).values()];
}
