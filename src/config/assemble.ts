import type { Config } from './config.ts';
import type { WrittenRoute } from './lists.ts';
import { parseDocument } from './parse.ts';
import { isMapping, within, type Environment, type Problem } from './paths.ts';
import { resolveRoutes } from './routes.ts';
import { checkRules } from './rules.ts';
import { eachSecret } from './secrets.ts';
import { without } from './substitute.ts';

export interface Assembled {
  /** To be used only when there are no problems: what was wrong has its default here. */
  readonly config: Config;
  readonly written: readonly WrittenRoute[];
  /** What is wrong with single values. */
  readonly problems: readonly Problem[];
  /** What is wrong with how values go together; see `consequences`. */
  readonly conflicts: readonly Problem[];
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
  const { values, problems } = parseDocument(document, env);
  // Of a sink with a wrong key the name is known all the same.
  const written = isMapping(document) ? document['sinks'] : {};
  const { routes, ...routing } = resolveRoutes(
    values.routes ?? null,
    Object.keys(Object(written)),
    values.envelope,
  );
  const bound = eachSecret(values.signing);
  const signing = {
    ...values.signing,
    secrets: bound.map(({ secret }) => secret),
    teams: bound.map(({ teams }) => teams),
  };
  const config: Config = { ...values, signing, routes };
  const rules = checkRules(config);

  const direct = problems.filter(({ path }) => !unset.some((hole) => within(path, hole.path)));
  const sinksUnknown = [...unset, ...direct].some(({ path }) => path.length === 0 || path.join() === 'sinks');
  return {
    config,
    written: values.routes ?? [],
    problems: direct,
    conflicts: [...(sinksUnknown ? [] : routing.problems), ...rules.problems],
    warnings: [...routing.warnings, ...rules.warnings],
  };
}

/** Those of the conflicts that do not follow from a value that is missing or wrong: these would only mislead. */
export function consequences(conflicts: readonly Problem[], causes: readonly Problem[]): Problem[] {
  return conflicts.filter(
    ({ path }) => !causes.some((cause) => within(path, cause.path) || within(cause.path, path)),
  );
}
