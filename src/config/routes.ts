import {
  formatTarget,
  matchesAll,
  parseTarget,
  type Redaction,
  type Route,
  type Target,
} from '../core/route.ts';
import type { WrittenRoute } from './lists.ts';
import { checkRedaction, redactionOf } from './redactions.ts';
import { nearest } from '../lib/nearest.ts';
import type { Path, Problem } from './paths.ts';

/** Builds the routes, and checks them with the sinks and each other. */
export function resolveRoutes(
  written: readonly WrittenRoute[] | null,
  sinks: readonly string[],
  fields: Redaction['fields'],
): Record<'problems' | 'warnings', readonly Problem[]> & { readonly routes: readonly Route[] } {
  if (written === null) {
    const to = sinks.map((sink) => ({ sink, destination: null }));
    return { routes: to.length === 0 ? [] : [{ match: ['*'], to }], problems: [], warnings: [] };
  }
  const routes = written.map((rule) => ({
    match: rule.match,
    to: rule.to.map((entry): Target => {
      const own = typeof entry === 'string' ? { target: entry, ...rule } : entry;
      const redactions = redactionOf(own, fields);
      return { ...parseTarget(own.target), ...(redactions === undefined ? {} : { redactions }) };
    }),
  }));
  const problems = routes.flatMap((route, index) => checkRoute(route, ['routes', index], sinks));
  for (const [index, rule] of written.entries()) {
    problems.push(...checkRedaction(rule, ['routes', index], fields));
    for (const [place, entry] of rule.to.entries())
      if (typeof entry !== 'string')
        problems.push(...checkRedaction(entry, ['routes', index, 'to', place], fields));
  }
  const warnings = [...routes.flatMap(checkShadow), ...checkRest(routes)];
  return { routes, problems, warnings };
}

function checkRoute(route: Route, path: Path, sinks: readonly string[]): Problem[] {
  const problems: Problem[] = [];
  if (route.match.length === 0)
    problems.push({ path: [...path, 'match'], message: 'must name at least one prefix' });
  const seen = new Set<string>();
  for (const [index, target] of route.to.entries()) {
    const at = [...path, 'to', index];
    const text = formatTarget(target);
    if (seen.has(text)) problems.push({ path: at, message: `names "${text}" a second time` });
    else if (target.destination === '')
      problems.push({ path: at, message: 'names no destination after the colon' });
    else if (!sinks.includes(target.sink))
      problems.push({ path: at, message: unknownSink(target.sink, sinks) });
    seen.add(text);
  }
  return problems;
}

function unknownSink(sink: string, sinks: readonly string[]): string {
  const close = nearest(sink, sinks);
  const advice =
    close === undefined ? `configured are: ${sinks.join(', ') || 'none'}` : `did you mean "${close}"?`;
  return `names the sink "${sink}", which is not configured; ${advice}`;
}

/** First two words of the documented event types. */
const FAMILIES =
  `daily.data. historical.data. labtest.order. labtest.result. labtest.appointment. labtest.match_review.
  lab_report.parsing_job. provider.connection. provider.device. message.attempt. continuous_query.result_table.`.split(
    /\s+/,
  );
const FIRST_WORDS = FAMILIES.map((family) => family.replace(/\..*/, '.'));

/**
 * Warnings for prefixes that match no documented type, but nearly do. Types of other senders are not known, so that a prefix that is
 * far from all is no warning.
 * @param seen types that the receiver has seen
 */
export function unknownPrefixes(routes: readonly Route[], seen: readonly string[] = []): string[] {
  return routes.flatMap(({ match }, index) =>
    match.flatMap((prefix) => {
      const meant = seen.some((type) => type.startsWith(prefix)) ? null : meantBy(prefix);
      return meant === null
        ? []
        : [`routes[${index}]: "${prefix}" matches no documented event type; did you mean "${meant}"?`];
    }),
  );
}

/** A documented prefix that was probably meant; null for a documented one, and for one that is far from all. */
function meantBy(prefix: string): string | null {
  const [, first = '', second = '', rest = ''] = /^([^.]*\.?)([^.]*\.?)(.*)$/.exec(prefix) ?? [];
  if (prefix === '*' || first === '') return null;
  if (!FIRST_WORDS.includes(first)) {
    const close = nearest(first, FIRST_WORDS);
    return close === undefined ? null : `${close}${second}${rest}`;
  }
  if (second === '' || FAMILIES.includes(`${first}${second}`)) return null;
  const close = nearest(
    `${first}${second}`,
    FAMILIES.filter((family) => family.startsWith(first)),
  );
  return close === undefined ? null : `${close}${rest}`;
}

/** Prefixes whose events all match an earlier route. */
function checkShadow(route: Route, index: number, routes: readonly Route[]): Problem[] {
  const hidden = route.match.flatMap((prefix, position) => {
    const by = routes
      .slice(0, index)
      .findIndex((earlier) => earlier.match.some((wider) => covers(wider, prefix)));
    return by === -1 ? [] : [{ position, prefix, by }];
  });
  const [first] = hidden;
  if (first !== undefined && hidden.length === route.match.length) {
    return [
      { path: ['routes', index], message: `can never match: routes[${first.by}] takes all its types first` },
    ];
  }
  return hidden.map(({ position, prefix, by }) => ({
    path: ['routes', index, 'match', position],
    message: `can never match: routes[${by}] takes all of "${prefix}" first`,
  }));
}

function checkRest(routes: readonly Route[]): Problem[] {
  const nowhere = routes.flatMap((route, index) =>
    route.to.length > 0
      ? []
      : [{ path: ['routes', index, 'to'], message: 'is empty: what it matches goes nowhere' }],
  );
  if (routes.some(matchesAll)) return nowhere;
  return [
    ...nowhere,
    { path: ['routes'], message: 'does not end with "*": events that match no rule go nowhere' },
  ];
}

function covers(wider: string, prefix: string): boolean {
  return wider === '*' || (prefix !== '*' && prefix.startsWith(wider));
}
