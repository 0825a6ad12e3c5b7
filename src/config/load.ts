import { readFileSync } from 'node:fs';
import { actAsOwnerOf } from '../core/act-as-owner.ts';
import { nearest } from '../lib/nearest.ts';
import { readYamlLoosely } from '../lib/yaml.ts';
import type { Config, DescribedConfig, LoadedConfig, ResolvedConfig } from './config.ts';
import { type FileOptions, fileOf, readText } from './file.ts';
import { warnOfNewArchives } from './folders.ts';
import { insteadOfVariable } from './issues.ts';
import { configKeys } from './keys.ts';
import type { WrittenRoute } from './lists.ts';
import { type Modules, resolveModules } from './modules.ts';
import { parseDocument } from './parse.ts';
import { type Environment, isMapping, keyOf, type Problem, within } from './paths.ts';
import { ConfigError, type Document, lineOf, locate, parseYaml } from './problem.ts';
import { sparingArchives } from './redactions.ts';
import { resolveRoutes } from './routes.ts';
import { checkModules, checkPlainKeys, checkRules } from './rules.ts';
import { eachSecret } from './secrets.ts';
import { substitute, without } from './substitute.ts';

export interface LoadOptions extends FileOptions {
  /**
   * For commands that only read: an unresolved `${…}` is a warning instead of an error. A setting or secret is left out
   * then; sinks, sources and routes keep the text.
   */
  readonly lenient?: boolean;
}

type TextOptions = LoadOptions & { readonly file: string };

/**
 * Reads the config: environment over file over defaults. No other code reads the file or the environment. The options of
 * sinks and sources are not checked.
 * @throws MillraceError config_missing; ConfigError config_invalid with every problem, or secret_missing when the only
 *   problem is an unresolved signing secret
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const file = fileOf(options);
  return parseConfig(readOwned(options), { ...options, file });
}

/**
 * What can be read of a config that cannot be used, or is not there: enough to find the receiver that runs with an earlier version of
 * the file. First with the valid values of the file, then with those of the environment and the defaults alone.
 */
export function salvageConfig(options: LoadOptions): readonly LoadedConfig[] {
  const file = fileOf(options);
  let read: unknown = {};
  try {
    read = readYamlLoosely(readOwned(options));
  } catch {
    // Not there.
  }
  return [read, {}].map((value) => {
    const { loaded } = draftOf(JSON.stringify(value), { ...options, file, lenient: true });
    return { ...loaded, isSalvaged: true };
  });
}

/** Like `loadConfig`, for a text; `file` is its name in messages. */
export function parseConfig(text: string, options: TextOptions): LoadedConfig {
  const draft = draftOf(text, options);
  refuse(draft, draft.problems, draft.conflicts);
  return draft.loaded;
}

/**
 * Like `loadConfig`, and lets the modules of sinks and sources check their options and describe themselves.
 * @throws as loadConfig; ConfigError sink_module_invalid when modules that cannot be loaded are the only problem
 */
export async function resolveConfig(options: LoadOptions): Promise<ResolvedConfig> {
  const file = fileOf(options);
  return resolveText(readOwned(options), { ...options, file });
}

/** Like `resolveConfig`, for a text. @param modules for tests */
export async function resolveText(
  text: string,
  options: TextOptions,
  modules?: Modules,
): Promise<ResolvedConfig> {
  const draft = draftOf(text, options);
  const { loaded } = draft;
  const { descriptions, problems, ...parts } = await resolveModules(loaded, modules);
  const sinks = Object.entries(loaded.config.sinks).map(([name, sink]) => {
    return [name, { ...sink, description: descriptions.get(`sinks.${name}`) ?? {} }] as const;
  });
  const described = { ...loaded.config, sinks: byName(sinks) };
  const isArchive = (name: string): boolean => new Map(sinks).get(name)?.description.archive !== undefined;
  const routes = sparingArchives(described.routes, draft.written, isArchive);
  const config: DescribedConfig = { ...described, routes };
  const conflicts = [...draft.conflicts, ...checkModules(config, descriptions)];
  refuse(draft, [...draft.problems, ...problems], conflicts);
  const risks = warnOfNewArchives(config).map((problem) => lineOf(locate(draft.source, problem)));
  return { ...loaded, ...parts, config, warnings: [...loaded.warnings, ...risks] };
}

/** Without a prototype: a route to `constructor` names no sink. */
function byName<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.assign(Object.create(null) as Record<string, T>, Object.fromEntries(entries));
}

interface Draft {
  /** With the defaults for invalid values: usable only without problems. */
  readonly loaded: LoadedConfig;
  readonly source: Document;
  readonly written: readonly WrittenRoute[];
  /** Unresolved references. */
  readonly holes: readonly Problem[];
  /** Faults of single values. */
  readonly problems: readonly Problem[];
  /** Faults of how values go together. */
  readonly conflicts: readonly Problem[];
  readonly lenient: boolean;
}

function readOwned(options: LoadOptions): string {
  actAsOwnerOf(fileOf(options));
  return readText(options);
}

/** Sections that keep an unresolved placeholder: modules check their own options, and routes only have names. */
const KEEPS_PLACEHOLDERS: ReadonlySet<string | number | undefined> = new Set(['sinks', 'sources', 'routes']);

/** Builds the config of a text, and finds all problems but those that modules report. */
function draftOf(text: string, { file, env, lenient = false }: TextOptions): Draft {
  const source = parseYaml(text, file);
  const document = substitute(source.value, env, (path) => readFileSync(path, 'utf8'));
  const holes = document.unset;
  const gaps = holes.map(({ path }) => path).filter(([root]) => !KEEPS_PLACEHOLDERS.has(root));
  const filled = without(document.value, gaps);
  const { values, problems } = parseDocument(filled, env);
  // Also sinks with wrong keys can be named by routes.
  const named = Object.keys(Object(isMapping(filled) ? filled['sinks'] : {}));
  const { routes, ...routing } = resolveRoutes(values.routes ?? null, named, values.envelope);
  const bound = eachSecret(values.signing);
  const secrets = { secrets: bound.map(({ secret }) => secret), teams: bound.map(({ teams }) => teams) };
  const sinks = byName(Object.entries(values.sinks));
  const config: Config = { ...values, signing: { ...values.signing, ...secrets }, sinks, routes };
  const rules = checkRules(config);
  // An unresolved reference is one problem, not another one for its placeholder.
  const direct = problems.filter(({ path }) => !holes.some((hole) => within(path, hole.path)));
  const sinksUnknown = [...holes, ...direct].some(({ path }) => path.length === 0 || path.join() === 'sinks');
  const warnings = [...holes, ...routing.warnings, ...rules.warnings];
  return {
    loaded: {
      config,
      file,
      isSalvaged: false,
      warnings: [
        ...warnings.map((problem) => lineOf(locate(source, problem))),
        ...straySettings(env, document.variables),
      ],
      substituted: document.substituted,
      unset: holes.map(({ path }) => keyOf(path)),
    },
    source,
    written: values.routes ?? [],
    holes,
    problems: [...direct, ...checkPlainKeys(document.value, document.substituted)],
    conflicts: [...(sinksUnknown ? [] : routing.problems), ...rules.problems],
    lenient,
  };
}

/** @throws ConfigError for any problem */
function refuse(
  { source, holes, lenient }: Draft,
  problems: readonly Problem[],
  conflicts: readonly Problem[],
): void {
  const wrong = [...problems, ...independent(conflicts, [...holes, ...problems])];
  const all = lenient ? wrong : [...holes, ...wrong];
  if (all.length === 0) return;
  const onlySecrets = wrong.length === 0 && holes.every(({ path }) => within(path, ['signing', 'secrets']));
  const code = onlySecrets
    ? 'secret_missing'
    : all.every(({ unloadable }) => unloadable === true)
      ? 'sink_module_invalid'
      : 'config_invalid';
  throw new ConfigError(
    code,
    all.map((problem) => locate(source, problem)),
  );
}

const PREFIX = 'MILLRACE_';

/**
 * Warnings for variables that look like a misspelt setting (`MILLRACE_SERVER_PROT`). No errors: container platforms set
 * variables of their own.
 * @param mentioned variables in the file
 */
function straySettings(env: Environment, mentioned: ReadonlySet<string>): string[] {
  const known = configKeys().scalars.map((scalar) => scalar.env.slice(PREFIX.length));
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith(PREFIX) || name === 'MILLRACE_CONFIG') return [];
    const own = name.slice(PREFIX.length);
    if (known.includes(own) || mentioned.has(name)) return [];
    const instead = insteadOfVariable(own);
    if (instead !== null) return [`${name} ${instead}`];
    const close = nearest(own, known);
    return close === undefined ? [] : [`${name} is not a known setting; did you mean ${PREFIX}${close}?`];
  });
}

/** Conflicts that do not follow from a missing or invalid value. */
function independent(conflicts: readonly Problem[], causes: readonly Problem[]): Problem[] {
  return conflicts.filter(
    ({ path }) => !causes.some((cause) => within(path, cause.path) || within(cause.path, path)),
  );
}
