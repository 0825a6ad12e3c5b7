import type { Envelope } from '../../core/event.ts';
import type { Target } from '../../core/route.ts';
import type { RouteTable } from './table.ts';

/** What of an event a route's outcome shows. */
export interface ExplainedEvent extends Envelope {
  /** Size of the exact body, in bytes. */
  readonly bytes: number;
}

/** A route that does not decide, and why. */
export interface SkippedRule {
  readonly index: number;
  readonly match: readonly string[];
  /** `no-match`: none of its prefixes fits the type. `decided`: an earlier route has decided; `matches` says whether it would have. */
  readonly reason: 'no-match' | 'decided';
  readonly matches: boolean;
}

/** Why events of a type go where they go. */
export interface Explanation {
  readonly type: string;
  /** The route that decides and its prefix that matched; `null` when the event goes nowhere. */
  readonly rule: { readonly index: number; readonly match: string } | null;
  readonly targets: readonly Target[];
  readonly skipped: readonly SkippedRule[];
  /** Only when an event was given. `key` is its partition key and ordering key: the user id. */
  readonly event: (Omit<ExplainedEvent, 'type'> & { readonly key: string | null }) | null;
}

/** Explains a type, or an event with its own ids and size. Uses the same table as delivery, so it cannot disagree. */
export function explain(table: RouteTable, subject: string | ExplainedEvent): Explanation {
  const type = typeof subject === 'string' ? subject : subject.type;
  const { index, match, targets } = table.routesFor(type);
  return {
    type,
    rule: index === null || match === null ? null : { index, match },
    targets,
    skipped: table.routes.flatMap((route, position) => {
      if (position === index) return [];
      const reason = index !== null && position > index ? 'decided' : 'no-match';
      const matches = route.match.some((prefix) => prefix === '*' || type.startsWith(prefix));
      return [{ index: position, match: route.match, reason, matches } satisfies SkippedRule];
    }),
    event: typeof subject === 'string' ? null : explainEvent(subject),
  };
}

function explainEvent({ team, user, clientUser, bytes }: ExplainedEvent): Explanation['event'] {
  return { team, user, clientUser, bytes, key: user };
}
