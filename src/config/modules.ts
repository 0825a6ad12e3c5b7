import { dirname } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import type { SinkDescription, SinkModule } from '../core/sink.ts';
import type { Written } from '../lib/parse-options.ts';
import type { SourceModule } from '../core/source.ts';
import { loadSinkModule } from '../sinks/registry.ts';
import { loadSourceModule } from '../sources/registry.ts';
import type { LoadedConfig, ResolvedConfig, ResolvedSink, ResolvedSource } from './config.ts';
import { detailOf, problemsOf } from './issues.ts';
import { keyOf, type Problem } from './paths.ts';
import { scrub, secretsOf } from './redact.ts';

/** What the modules of a config's sinks and sources say of it. */
export interface Resolved extends Pick<ResolvedConfig, 'sinks' | 'sources' | 'schemas'> {
  readonly descriptions: Readonly<Record<string, SinkDescription>>;
  /** Why sources need a journal, by name. */
  readonly needsJournal: Readonly<Record<string, string>>;
  /** They never quote a secret. */
  readonly problems: readonly Problem[];
}

/** Finds what makes sinks and sources of a type; only tests pass their own. */
export interface Modules {
  /** @param baseFolder what a relative path is relative to */
  sink(type: string, baseFolder: string): Promise<SinkModule>;
  source(type: string): Promise<SourceModule>;
}

const REGISTRIES: Modules = { sink: loadSinkModule, source: loadSourceModule };

/** Loads the module of each sink and source, lets it check its options and say what it is. Opens nothing. */
export async function resolveModules(
  loaded: Pick<LoadedConfig, 'config' | 'file' | 'substituted' | 'unset'>,
  modules: Modules = REGISTRIES,
): Promise<Resolved> {
  const { config, file, substituted, unset } = loaded;
  const sinks = new Map<string, ResolvedSink>();
  const sources: ResolvedSource[] = [];
  const descriptions: Record<string, SinkDescription> = {};
  const needsJournal: Record<string, string> = {};
  const schemas = new Map<string, Written>();
  const problems: Problem[] = [];
  const read = async <Module extends SinkModule | SourceModule>(
    section: 'sinks' | 'sources',
    name: string,
    load: () => Promise<Module>,
    use: (module: Module, parse: () => unknown) => void,
  ): Promise<void> => {
    const root = [section, name];
    const written = config[section][name]?.options ?? {};
    const secrets = secretsOf(section, name, written, substituted);
    const wrong = (found: readonly Problem[]): void =>
      void problems.push(...found.map((one) => ({ ...one, message: scrub(one.message, secrets) })));
    let module: Module;
    try {
      module = await load();
    } catch (error) {
      const unloadable = error instanceof MillraceError && error.code === 'sink_module_invalid';
      return wrong([{ path: [...root, 'type'], message: detailOf(error), unloadable }]);
    }
    const schema = module.optionsSchema?.();
    if (schema !== undefined) schemas.set(keyOf(root), schema);
    try {
      use(module, () => module.parseOptions(written));
    } catch (error) {
      wrong(problemsOf(root, error, schema));
    }
  };
  const isWhole = (root: string): boolean => !unset.some((key) => key.startsWith(`${root}.`));
  for (const [name, { type, required, options: written }] of Object.entries(config.sinks)) {
    await read(
      'sinks',
      name,
      () => modules.sink(type, dirname(file)),
      (module, parse) => {
        if (isWhole(`sinks.${name}`)) sinks.set(name, { name, type, required, module, options: parse() });
        descriptions[name] = module.describe?.(written) ?? {};
      },
    );
  }
  for (const [name, { type, options: written }] of Object.entries(config.sources)) {
    await read(
      'sources',
      name,
      () => modules.source(type),
      (module, parse) => {
        const reason = module.needsJournal?.(written) ?? null;
        if (reason !== null) needsJournal[name] = reason;
        if (isWhole(`sources.${name}`)) sources.push({ name, module, options: parse() });
      },
    );
  }
  return { sinks, sources, descriptions, needsJournal, schemas, problems };
}
