import type { Envelope } from '../../core/event.ts';
import { leavingText, matches, matchesAll, type Route, type Target } from '../../core/route.ts';
import { inColumns } from '../../lib/columns.ts';
import { aboutBytes } from '../../lib/units.ts';
import { visible } from '../../lib/visible.ts';
import type { RouteTable } from './table.ts';

/** An event to explain: its envelope, and its size. */
export interface ExplainedEvent extends Envelope {
  /** Size of the exact body, in bytes. */
  readonly bytes: number;
}

/** A route that does not decide, and why. */
interface SkippedRule {
  readonly index: number;
  readonly match: readonly string[];
  /** `no-match`: none of its prefixes matches. `decided`: an earlier route has decided; `matches` says whether this one would. */
  readonly reason: 'no-match' | 'decided';
  readonly matches: boolean;
}

/** Why events of a type go where they go. */
interface Explanation {
  readonly type: string;
  /** The route that decides, and its prefix that matches; null when the event goes nowhere. */
  readonly rule: { readonly index: number; readonly match: string } | null;
  readonly targets: readonly Target[];
  readonly skipped: readonly SkippedRule[];
  /** Null when only a type was given. `key` is its partition key and ordering key: the user id. */
  readonly event: (Omit<ExplainedEvent, 'type'> & { readonly key: string | null }) | null;
}

/** Explains where a type or an event goes, by the table that delivery uses. */
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
      const isMatch = route.match.some((prefix) => matches(prefix, type));
      return [{ index: position, match: route.match, reason, matches: isMatch } satisfies SkippedRule];
    }),
    event: typeof subject === 'string' ? null : eventFacts(subject),
  };
}

function eventFacts({ team, user, clientUser, bytes }: ExplainedEvent): Explanation['event'] {
  return { team, user, clientUser, bytes, key: user };
}

/** The route table as aligned text, a line for each target. */
export function renderRoutes(routes: readonly Route[]): string {
  const isAnyRedacted = routes.some(({ to }) => to.some((target) => leavingText(target) !== null));
  const rows = routes.flatMap(({ match, to }, index) => {
    const targets: readonly (Target | null)[] = to.length === 0 ? [null] : to;
    return targets.map((target, line) => [
      line === 0 ? `routes[${index}]` : '',
      line === 0 ? match.join(', ') : '',
      target === null ? '(nowhere)' : target.sink,
      target?.destination ?? '',
      ...(isAnyRedacted ? [target === null ? '' : (leavingText(target) ?? 'all')] : []),
    ]);
  });
  if (!routes.some(matchesAll)) rows.push(['', '(anything else)', '(nowhere)', '']);
  return inColumns([
    ['ROUTE', 'MATCH', 'SINK', 'DESTINATION', ...(isAnyRedacted ? ['LEAVES'] : [])],
    ...rows,
  ]);
}

/** An explanation as a few lines of text. */
export function renderExplanation(explanation: Explanation): string {
  const { type, rule, targets, skipped, event } = explanation;
  const decided = rule === null ? 'no route matches' : `routes[${rule.index}], by "${rule.match}"`;
  const facts = [['  rule', decided], ...targetRows(targets), ...eventRows(event)];
  const others = skipped.map((other) => [
    `  routes[${other.index}]`,
    `${other.match.join(', ')}: ${reasonOf(other)}`,
  ]);
  return [
    visible(type),
    inColumns(facts),
    ...(others.length === 0 ? [] : ['  not used:', inColumns(others, '  ')]),
  ].join('\n');
}

function targetRows(targets: readonly Target[]): string[][] {
  if (targets.length === 0) return [['  sinks', 'none: the event goes nowhere']];
  return targets.map((target, line) => {
    const { sink, destination } = target;
    const leaving = leavingText(target);
    const place = destination === null ? sink : `${sink}, destination ${destination}`;
    return [line === 0 ? '  sinks' : '', leaving === null ? place : `${place}: ${leaving}`];
  });
}

function eventRows(event: Explanation['event']): string[][] {
  if (event === null) return [['  key', 'the user id of the event (partition key, ordering key)']];
  return [
    [
      '  key',
      event.key === null ? 'none: the event has no user id' : `${event.key} (partition key, ordering key)`,
    ],
    ['  team', event.team ?? 'none'],
    ['  client user', event.clientUser ?? 'none'],
    ['  size', `${event.bytes} bytes${event.bytes < 1024 ? '' : ` (${aboutBytes(event.bytes)})`}`],
  ];
}

function reasonOf({ reason, matches: isMatch }: SkippedRule): string {
  if (reason === 'no-match') return 'does not match';
  return isMatch ? 'matches too, but comes later' : 'comes later';
}
