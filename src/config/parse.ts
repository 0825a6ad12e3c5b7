import convict from 'convict';
import type { z } from 'zod';
import type { Written } from '../lib/parse-options.ts';
import { problemsOf } from './issues.ts';
import { configKeys, scalarAt } from './keys.ts';
import {
  isMapping,
  valueAt,
  within,
  type Environment,
  type Mapping,
  type Path,
  type Problem,
} from './paths.ts';
import { CONFIG } from './schema.ts';
import { without } from './substitute.ts';

export type Values = z.output<typeof CONFIG>;

/**
 * Environment over file over default. Empty variables, sections and lists count as unset. An invalid value, sink or
 * source is returned as if it were absent, so that the rest can be checked.
 */
export function parseDocument(document: unknown, env: Environment): { values: Values; problems: Problem[] } {
  const { written, scalars, lists } = configKeys();
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its tree is built from the schema
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
  const valid = without(
    layered,
    problems.map(({ path }) => pieceOf(path)),
  );
  const values = CONFIG.parse(problems.some(({ path }) => path.length === 0) ? {} : valid);
  return { values, problems };
}

/** The part that an invalid value at `path` makes unusable. */
function pieceOf(path: Path): Path {
  if (path[0] === 'sinks' || path[0] === 'sources') return path.slice(0, 2);
  const { scalars, lists } = configKeys();
  return [...scalars, ...lists].find((key) => within(path, key.path))?.path ?? path;
}

/** For convict, which reads the environment; zod checks values and has the defaults. */
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

/** The document with the values of the environment, without empty sections and lists. */
function layer(document: Mapping, set: Mapping, { properties = {} }: Written): Mapping {
  const result = { ...document };
  for (const [key, schema] of Object.entries(properties)) {
    // A section with `enabled` can be written as that value alone: `schema: false`.
    const isSwitch = typeof result[key] === 'boolean' && schema.properties?.['enabled'] !== undefined;
    const value = isSwitch ? { enabled: result[key] } : (result[key] ?? {});
    if (schema.kind !== undefined) result[key] = set[key] ?? result[key];
    else if (schema.properties !== undefined && isMapping(value))
      result[key] = layer(value, Object(set[key]), schema);
    else if (result[key] === null) delete result[key];
  }
  return result;
}
