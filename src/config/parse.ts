import convict from 'convict';
import type { z } from 'zod';
import type { Written } from '../lib/parse-options.ts';
import { problemsOf } from './issues.ts';
import { configKeys, scalarAt } from './keys.ts';
import { isMapping, within, type Environment, type Mapping, type Path, type Problem } from './paths.ts';
import { CONFIG } from './schema.ts';
import { without } from './substitute.ts';

export type Values = z.output<typeof CONFIG>;

/**
 * Environment over file over default. An empty variable counts as unset: an empty token or path is never meant; so does an
 * empty section or list. A value that does not fit, and a sink or source among the others, comes back as if it were absent, so
 * that the rest can be checked too.
 */
export function parseDocument(document: unknown, env: Environment): { values: Values; problems: Problem[] } {
  const { written, scalars, lists } = configKeys();
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tree is told by walking it
  const variables = convict<Mapping>(toConvict(written, []) as convict.Schema<Mapping>, {
    env: set,
    args: [],
  });
  const layered = isMapping(document ?? {})
    ? layer(Object(document), variables.getProperties(), written)
    : document;
  const result = CONFIG.safeParse(layered);
  if (result.success) return { values: result.data, problems: [] };
  const everywhere = [...scalars, ...lists].map(({ key }) => key);
  const problems = problemsOf([], result.error, written, everywhere).map((problem) => {
    const scalar = scalarAt(problem.path);
    if (scalar === undefined) return problem;
    if (isMapping(valueAt(layered, problem.path))) return { ...problem, message: 'must be a single value' };
    return set[scalar.env] === undefined ? problem : { ...problem, env: scalar.env };
  });
  const fitting = without(
    layered,
    problems.map(({ path }) => pieceOf(path)),
  );
  const values = CONFIG.parse(problems.some(({ path }) => path.length === 0) ? {} : fitting);
  return { values, problems };
}

/** What cannot be used when there is something wrong at `path`. */
function pieceOf(path: Path): Path {
  if (path[0] === 'sinks' || path[0] === 'sources') return path.slice(0, 2);
  const { scalars, lists } = configKeys();
  return [...scalars, ...lists].find((key) => within(path, key.path))?.path ?? path;
}

/** convict reads the environment, and documents it; what a value is and its default say the fields. */
function toConvict({ properties = {} }: Written, path: readonly string[]): Mapping {
  const entries = Object.entries(properties).flatMap(([key, schema]) => {
    const here = [...path, key];
    if (schema.properties !== undefined) return [[key, toConvict(schema, here)]];
    const scalar = scalarAt(here);
    if (scalar === undefined) return [];
    return [[key, { doc: scalar.schema.description, format: '*', default: null, env: scalar.env }]];
  });
  return Object.fromEntries(entries);
}

/** A document with what is set beside it, and without empty sections and lists. */
function layer(document: Mapping, set: Mapping, { properties = {} }: Written): Mapping {
  const result = { ...document };
  for (const [key, schema] of Object.entries(properties)) {
    // A section with a switch can be written as the switch alone: `schema: false`.
    const isSwitch = typeof result[key] === 'boolean' && schema.properties?.['enabled'] !== undefined;
    const value = isSwitch ? { enabled: result[key] } : (result[key] ?? {});
    if (schema.kind !== undefined) result[key] = set[key] ?? result[key];
    else if (schema.properties !== undefined && isMapping(value))
      result[key] = layer(value, Object(set[key]), schema);
    else if (result[key] === null) delete result[key];
  }
  return result;
}

function valueAt(document: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, step) => (isMapping(value) ? value[step] : undefined), document);
}
