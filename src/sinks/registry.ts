import { existsSync } from 'node:fs';
import { registerHooks, type ResolveHookSync } from 'node:module';
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { LazySinkModule, SinkModule } from '../core/sink.ts';
import { onBehalfOf } from '../lib/attribution.ts';
import { isRecord } from '../lib/parsed.ts';
import { OwnModule } from './own-module.ts';

/** Options and module of each type, loaded on demand: a config loads no other type's code, and `check` loads no sink. */
const BUILT_IN = {
  files: [() => import('./files/config.ts'), () => import('./files/sink.ts')],
  stdout: [() => import('./stdout/config.ts'), () => import('./stdout/sink.ts')],
  'event-hubs': [() => import('./event-hubs/config.ts'), () => import('./event-hubs/sink.ts')],
  pubsub: [() => import('./pubsub/config.ts'), () => import('./pubsub/sink.ts')],
  kafka: [() => import('./kafka/config.ts'), () => import('./kafka/sink.ts')],
  postgres: [() => import('./postgres/config.ts'), () => import('./postgres/sink.ts')],
  http: [() => import('./http/config.ts'), () => import('./http/sink.ts')],
  'follow-up': [() => import('./follow-up/config.ts'), () => import('./follow-up/sink.ts')],
} as const satisfies Record<
  string,
  readonly [options: () => Promise<Omit<LazySinkModule, 'load'>>, load: LazySinkModule['load']]
>;

/** Types that can stand under `sinks.<name>.type` by name. */
export const SINK_TYPES: readonly string[] = Object.keys(BUILT_IN);

const VERBS = ['parseOptions', 'createSink'] as const;

/**
 * The module of a sink type: a built-in one, or a user's own file that exports `parseOptions` and `createSink`, by name or as its
 * default export.
 * @param type `files`, `./my-sink.js`, `../sinks/mine.ts`, or an absolute path
 * @param baseFolder folder of the config file, for a relative path
 * @throws MillraceError sink_module_invalid that names the file and what is wrong with it
 */
export async function loadSinkModule(type: string, baseFolder: string): Promise<LazySinkModule> {
  const builtIn = Object.entries(BUILT_IN).find(([name]) => name === type)?.[1];
  if (builtIn !== undefined) {
    const [options, load] = builtIn;
    return { ...(await options()), load };
  }
  const file = moduleFile(type, baseFolder);
  if (file === null) {
    const known = `a built-in type (${SINK_TYPES.join(', ')})`;
    throw invalid(`${JSON.stringify(type)} is neither ${known} nor a path such as ./my-sink.js`);
  }
  if (!existsSync(file)) throw invalid(`${file} does not exist`);
  const own = new OwnModule(file);
  const hooks = registerHooks({ resolve: resolveOwnExports });
  let exported: unknown;
  try {
    exported = await onBehalfOf(own, () => import(pathToFileURL(file).href));
  } catch (error) {
    throw invalid(`${file} cannot be loaded: ${messageOf(error)}`, error);
  } finally {
    hooks.deregister();
  }
  const module = own.guarded(asSinkModule(exported, file));
  return { ...module, load: () => Promise.resolve(module) };
}

/** The file of a type; null for a built-in one. */
export function moduleFile(type: string, baseFolder: string): string | null {
  return /^\.{1,2}[\\/]/.test(type) || isAbsolute(type) ? resolve(baseFolder, type) : null;
}

/** Resolves `millrace/…` to the running millrace, if the module's folder has none installed. */
const resolveOwnExports: ResolveHookSync = (specifier, context, next) => {
  try {
    return next(specifier, context);
  } catch (error) {
    if (!specifier.startsWith('millrace/')) throw error;
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
};

function asSinkModule(exported: unknown, file: string): SinkModule {
  if (isSinkModule(exported)) return exported;
  const fallback = isRecord(exported) ? exported['default'] : undefined;
  if (isSinkModule(fallback)) return fallback;
  const best = isRecord(fallback) ? fallback : exported;
  const missing = VERBS.filter((verb) => !isRecord(best) || typeof best[verb] !== 'function');
  throw invalid(`${file} does not export the function ${missing.join(' and ')}`);
}

function invalid(detail: string, cause?: unknown): MillraceError {
  return new MillraceError('sink_module_invalid', detail, { cause });
}

function isSinkModule(value: unknown): value is SinkModule {
  return isRecord(value) && VERBS.every((verb) => typeof value[verb] === 'function');
}
