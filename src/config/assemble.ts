import type { Config } from './config.ts';
import { parseLists } from './parse-lists.ts';
import { parseScalars, type Environment, type ScalarProblem } from './parse-scalars.ts';
import { isMapping, within, type Problem } from './paths.ts';
import { resolveRoutes } from './routes.ts';
import { checkRules } from './rules.ts';
import { checkShape } from './shape.ts';
import { without } from './substitute.ts';

export interface Assembled {
  /** To be used only when there are no problems: what was wrong has its default here. */
  readonly config: Config;
  readonly scalarProblems: readonly ScalarProblem[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Sinks check their own options, and routes only name things: there a placeholder says more than a gap. */
const KEEPS_PLACEHOLDERS: ReadonlySet<string | number | undefined> = new Set(['sinks', 'sources', 'routes']);

/**
 * Builds the config from a substituted document and finds all that is wrong with it.
 * @param unset what could not be substituted; reported elsewhere, and so never a second time for its placeholder.
 */
export function assemble(value: unknown, env: Environment, unset: readonly Problem[]): Assembled {
  const gaps = unset.map(({ path }) => path).filter(([root]) => !KEEPS_PLACEHOLDERS.has(root));
  const document = without(value, gaps);
  const shape = checkShape(document);
  const scalars = parseScalars(shape.scalars, env);
  const lists = parseLists(isMapping(document) ? document : {});
  const { routes, ...routing } = resolveRoutes(lists.values.routes, Object.keys(lists.values.sinks));
  const config: Config = {
    ...scalars.values,
    signing: { ...scalars.values.signing, secrets: lists.values.secrets },
    envelope: { ...scalars.values.envelope, require: lists.values.require },
    sinks: lists.values.sinks,
    sources: lists.values.sources,
    routes,
  };
  const rules = checkRules(config);

  const direct = [...shape.problems, ...lists.problems].filter(
    ({ path }) => !unset.some((hole) => within(path, hole.path)),
  );
  // What follows from a value that is missing or wrong would only mislead.
  const causes = [...unset, ...scalars.problems, ...shape.problems, ...lists.problems];
  const sinksUnknown = causes.some(
    ({ path }) => path.length === 0 || (path[0] === 'sinks' && path.length < 3),
  );
  const indirect = [...(sinksUnknown ? [] : routing.problems), ...rules.problems].filter(
    ({ path }) => !causes.some((cause) => within(path, cause.path) || within(cause.path, path)),
  );
  return {
    config,
    scalarProblems: scalars.problems,
    problems: [...direct, ...indirect],
    warnings: [...routing.warnings, ...rules.warnings],
  };
}
