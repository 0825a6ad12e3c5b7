import { leavingText, type Route, type Target } from '../../core/route.ts';
import { inColumns } from '../../lib/columns.ts';
import { formatBytes } from '../../lib/units.ts';
import { visible } from '../../lib/visible.ts';
import type { Explanation, SkippedRule } from './explain.ts';

/** The route table as aligned text, a line for each target. */
export function renderRoutes(routes: readonly Route[]): string {
  // Without redactions nobody asks.
  const anyLess = routes.some(({ to }) => to.some((target) => leavingText(target) !== null));
  const rows = routes.flatMap(({ match, to }, index) => {
    const targets: readonly (Target | null)[] = to.length === 0 ? [null] : to;
    return targets.map((target, line) => [
      line === 0 ? `routes[${index}]` : '',
      line === 0 ? match.join(', ') : '',
      target === null ? '(nowhere)' : target.sink,
      target?.destination ?? '',
      ...(anyLess ? [target === null ? '' : (leavingText(target) ?? 'all')] : []),
    ]);
  });
  if (!routes.some(({ match }) => match.includes('*'))) rows.push(['', '(anything else)', '(nowhere)', '']);
  return inColumns([['ROUTE', 'MATCH', 'SINK', 'DESTINATION', ...(anyLess ? ['LEAVES'] : [])], ...rows]);
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
    ['  size', `${event.bytes} bytes${event.bytes < 1024 ? '' : ` (${approximate(event.bytes)})`}`],
  ];
}

function reasonOf({ reason, matches }: SkippedRule): string {
  if (reason === 'no-match') return 'does not match';
  return matches ? 'matches too, but comes later' : 'comes later';
}

function approximate(bytes: number): string {
  return `about ${formatBytes(Math.round(bytes / 1024) * 1024)}`;
}
