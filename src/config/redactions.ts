import { messageOf } from '../core/errors.ts';
import { NAMES } from '../core/member-names.ts';
import { parseTarget, type Redaction, type Route } from '../core/route.ts';
import type { SinkDescription } from '../core/sink.ts';
import { JsonCutter } from '../lib/json-cut.ts';
import { parsePath, type Step } from '../lib/json-paths.ts';
import { DEEPEST } from '../lib/json-text.ts';
import { nearest } from '../lib/nearest.ts';
import type { DescribedConfig } from './config.ts';
import type { WrittenRedaction, WrittenRoute } from './lists.ts';
import { keyOf, type Path, type Problem } from './paths.ts';

type Fields = Redaction['fields'];

const LISTS = ['only', 'redact', 'remove'] as const;

/** The redaction of a route or of an entry of its `to`; undefined without one. */
export function redactionOf(written: WrittenRedaction, fields: Fields): readonly Redaction[] | undefined {
  if (LISTS.every((list) => written[list] === undefined)) return undefined;
  const { only, redact, remove, mask } = written;
  const { type, team, user, clientUser } = fields;
  return [
    {
      ...(only === undefined ? {} : { only }),
      ...(redact === undefined ? {} : { redact }),
      ...(remove === undefined ? {} : { remove }),
      ...(mask === undefined ? {} : { mask }),
      fields: { type, team, user, clientUser },
    },
  ];
}

export function checkRedaction(written: WrittenRedaction, at: Path, fields: Fields): Problem[] {
  const problems: Problem[] = [];
  if (written.mask !== undefined && written.redact === undefined)
    problems.push({
      path: [...at, 'mask'],
      message: 'needs `redact` beside it: it stands in the place of what that names',
    });
  for (const list of LISTS) {
    if (written[list]?.length === 0 && list !== 'only')
      problems.push({ path: [...at, list], message: 'must name at least one path' });
    for (const [index, text] of (written[list] ?? []).entries()) {
      const message = problemWith(text, list === 'only' ? {} : fields);
      if (message !== null) problems.push({ path: [...at, list, index], message });
    }
  }
  return problems;
}

function problemWith(text: string, fields: Partial<Fields>): string | null {
  let path: readonly Step[];
  try {
    path = parsePath(text);
  } catch (error) {
    return `"${text}" ${messageOf(error)}`;
  }
  const { type, team, user } = fields;
  const cutter = new JsonCutter({ only: null, mask: [path], remove: [] });
  const needed = [type, team, user].find((name) => name !== undefined && cutter.hides(name));
  if (needed === undefined) return null;
  const deeper = text.startsWith('/**') ? `; "/*${text}" names only what stands deeper` : '';
  return `"${text}" names ${needed}, by which millrace routes, orders and erases${deeper}`;
}

/**
 * The routes without redactions for archives, which keep the original, unless the route leads to archives only. The
 * redaction of an entry of `to` applies to an archive too.
 */
export function sparingArchives(
  routes: readonly Route[],
  written: readonly WrittenRoute[],
  isArchive: (sink: string) => boolean,
): readonly Route[] {
  return routes.map((route, index) => {
    const entries = written[index]?.to ?? [];
    if (route.to.every(({ sink }) => isArchive(sink))) return route;
    const to = route.to.map((target, place) => {
      const { sink, destination } = target;
      return typeof entries[place] === 'string' && isArchive(sink) ? { sink, destination } : target;
    });
    return { ...route, to };
  });
}

/** Conflicts of redactions with sinks and other keys. */
export function checkRedactions({ routes, sinks, quarantine, envelope }: DescribedConfig): Problem[] {
  const redacted = routes.flatMap(({ to }, index) =>
    to.flatMap(({ sink, redactions }, place) =>
      redactions === undefined ? [] : [{ sink, path: ['routes', index, 'to', place] as const }],
    ),
  );
  const problems = redacted.flatMap(({ sink, path }): Problem[] => {
    const need: SinkDescription['needsOriginal'] = sinks[sink]?.description.needsOriginal;
    if (need === undefined) return [];
    const message = `leads redacted events to ${sink}, whose ${need.option} passes on signatures of the original: they would not match; change sinks.${sink}.${need.option}`;
    return [{ path: [...path], message }];
  });
  const [first] = redacted;
  if (first === undefined) return problems;
  if (envelope.maxDepth > DEEPEST) {
    const message = `must be at most ${DEEPEST}, because ${keyOf(first.path)} is redacted, and what is nested deeper cannot be`;
    problems.push({ path: ['envelope', 'maxDepth'], message });
  }
  const aside = quarantine.to === null ? null : parseTarget(quarantine.to).sink;
  if (redacted.some(({ sink }) => sink === aside)) {
    const message = `must name another sink: routes redact what goes to ${aside}, and what is not valid cannot be redacted`;
    problems.push({ path: ['quarantine', 'to'], message });
  }
  return problems;
}

const INDEX = /^\d+$/;

/**
 * Warnings for paths of redactions that no documented event has: a slip in one lets values out. `check --against` with
 * real events checks more.
 */
export function unknownNames(routes: readonly Route[]): string[] {
  const lines = new Set<string>();
  for (const [index, { to }] of routes.entries())
    for (const { redactions = [] } of to)
      for (const { only = [], redact = [], remove = [], fields } of redactions)
        for (const path of [...only, ...redact, ...remove]) {
          const known = [...NAMES, ...Object.values(fields)];
          for (const step of parsePath(path)) {
            if (typeof step === 'string' || known.includes(step.name) || INDEX.test(step.name)) continue;
            const close = nearest(step.name, known);
            const advice = close === undefined ? 'check how it is written' : `did you mean "${close}"?`;
            lines.add(
              `routes[${index}]: "${path}": no documented event has a member "${step.name}"; ${advice}`,
            );
          }
        }
  return [...lines];
}
