import { dirname } from 'node:path';
import { z } from 'zod';
import { actAsOwnerOf } from '../core/act-as-owner.ts';
import { detailOf, MillraceError } from '../core/errors.ts';
import type { ErasableStore } from '../core/erasure.ts';
import { spoolBeside } from '../core/place.ts';
import type { ConfigAround, LazySinkModule, SinkDescription, SinkKeys } from '../core/sink.ts';
import { lackOf } from '../lib/installed.ts';
import { isRecord } from '../lib/parsed.ts';
import type { Written } from '../lib/parse-options.ts';
import type { LazySourceModule } from '../core/source.ts';
import { loadSinkModule, moduleFile } from '../sinks/registry.ts';
import { loadSourceModule } from '../sources/registry.ts';
import type { LoadedConfig, ResolvedConfig, ResolvedSink, ResolvedSource } from './config.ts';
import { problemsOf } from './issues.ts';
import { isLocal } from '../journal/owner.ts';
import type { Problem } from './paths.ts';
import { scrub, secretsOf } from './redact.ts';

/** What the modules of sinks and sources report; without secrets. */
export interface Resolved extends Pick<ResolvedConfig, 'sinks' | 'sources' | 'schemas'> {
  /** By `sinks.<name>` and `sources.<name>`. */
  readonly descriptions: ReadonlyMap<string, SinkDescription>;
  readonly problems: readonly Problem[];
}

/** Finds the modules of sinks and sources; tests pass their own. */
export interface Modules {
  /** @param baseFolder what a relative path is relative to */
  sink(type: string, baseFolder: string): Promise<LazySinkModule>;
  source(type: string): Promise<LazySourceModule>;
}

const REGISTRIES: Modules = { sink: loadSinkModule, source: loadSourceModule };

/** Loads the module of each sink and source, which checks its options and describes itself. Opens nothing. */
export async function resolveModules(
  loaded: Pick<LoadedConfig, 'config' | 'file' | 'substituted' | 'unset'>,
  modules: Modules = REGISTRIES,
): Promise<Resolved> {
  const { config, file } = loaded;
  const sinks = new Map<string, ResolvedSink>();
  const sources: ResolvedSource[] = [];
  const descriptions = new Map<string, SinkDescription>();
  const schemas = new Map<string, Written>();
  const problems: Problem[] = [];
  const spool = isLocal(config) ? spoolBeside(config.journal.path) : null;
  const around: ConfigAround = { tables: config.tables, spool };
  const read = async <Module extends LazySinkModule | LazySourceModule>(
    [section, name]: readonly ['sinks' | 'sources', string],
    loading: Promise<Module>,
    use: (module: Module, written: unknown) => void,
  ): Promise<void> => {
    const key = `${section}.${name}`;
    const written = config[section][name]?.options ?? {};
    try {
      const module = await loading.catch((error: unknown) => {
        const unloadable = error instanceof MillraceError && error.code === 'sink_module_invalid';
        problems.push({ path: [section, name, 'type'], message: detailOf(error), unloadable });
      });
      if (module === undefined) return;
      schemas.set(key, module.optionsSchema?.() ?? {});
      // Unresolved options cannot be checked.
      if (!loaded.unset.some((hole) => hole.startsWith(`${key}.`))) use(module, written);
      const described = descriptionOf(module, written, around);
      descriptions.set(key, described);
      const lack = lackOf(described.packages ?? []);
      if (lack !== null) problems.push({ path: [section, name, 'type'], message: lack });
    } catch (error) {
      const secrets = secretsOf(section, name, written, loaded.substituted);
      const found = problemsOf([section, name], error, schemas.get(key));
      problems.push(...found.map((one) => ({ ...one, message: scrub(one.message, secrets) })));
    }
  };
  for (const { type } of Object.values(config.sinks)) {
    const own = moduleFile(type, dirname(file));
    if (own !== null) actAsOwnerOf(own);
  }
  for (const [name, { type }] of Object.entries(config.sinks))
    await read(['sinks', name], modules.sink(type, dirname(file)), (module, written) => {
      sinks.set(name, { name, module, options: module.parseOptions(written, around) });
    });
  for (const [name, { type }] of Object.entries(config.sources))
    await read(['sources', name], modules.source(type), (module, written) => {
      sources.push({ name, module, options: module.parseOptions(written) });
    });
  return { sinks, sources, descriptions, schemas, problems };
}

/** Checks the description of a module, also a user's own: erasures and the rules of the config depend on it. */
function descriptionOf(
  module: LazySinkModule | LazySourceModule,
  written: Readonly<Record<string, unknown>>,
  around: ConfigAround,
): SinkDescription {
  const said: unknown = module.describe?.(written, around) ?? {};
  if (said instanceof Promise) throw new Error('describe() of its module: must not be async');
  const { data, error } = description.safeParse(said);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  throw new Error(`describe() of its module: ${issue?.path.join('.')}: ${issue?.message}`);
}

const description = z.strictObject({
  folders: z
    .array(
      z.strictObject({
        path: z.string(),
        option: z.string(),
        erase: z.boolean(),
        isSpool: z.boolean().exactOptional(),
      }),
    )
    .exactOptional(),
  archive: z.string().exactOptional(),
  erases: z.custom<() => ErasableStore>((erases) => typeof erases === 'function').exactOptional(),
  keys: z
    .custom<SinkKeys>((keys) => isRecord(keys) && typeof keys['masterKey'] === 'function')
    .exactOptional(),
  keepsClaims: z.boolean().exactOptional(),
  needsOriginal: z.strictObject({ option: z.string() }).exactOptional(),
  needsJournal: z.strictObject({ option: z.string(), reason: z.string() }).exactOptional(),
  destinations: z.array(z.string().nullable()).exactOptional(),
  openFiles: z.int().min(0).exactOptional(),
  packages: z.array(z.string()).exactOptional(),
  writesStdout: z.boolean().exactOptional(),
});
