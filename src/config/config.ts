import type { Route } from '../core/route.ts';
import { MillraceError } from '../core/errors.ts';
import type { LazySinkModule, SinkDescription } from '../core/sink.ts';
import type { Written } from '../lib/parse-options.ts';
import type { LazySourceModule } from '../core/source.ts';
import type { SinkConfig } from './lists.ts';
import type { Values } from './parse.ts';

/** A checked config. Durations are milliseconds, sizes are bytes, absent optional texts are `null`. */
export interface Config extends Omit<Values, 'routes' | 'signing'> {
  /** `teams` has, for each of `secrets`, the teams whose events it may sign; null for all. */
  readonly signing: Omit<Values['signing'], 'secrets'> & {
    readonly secrets: readonly string[];
    readonly teams: readonly (readonly string[] | null)[];
  };
  readonly routes: readonly Route[];
}

/** A config with the descriptions that the modules of its sinks return. */
export interface DescribedConfig extends Config {
  readonly sinks: Readonly<Record<string, SinkConfig & { readonly description: SinkDescription }>>;
}

export interface LoadedConfig {
  readonly config: Config;
  /** Path of the file as it was given; paths of sink modules are relative to its folder. */
  readonly file: string;
  /** True when the file cannot be used: then this is only for finding the receiver that runs with an earlier version of it. */
  readonly isSalvaged: boolean;
  /** One sentence each, with the key. */
  readonly warnings: readonly string[];
  /** Keys whose values came from the environment or a file by `${…}`; never printed. */
  readonly substituted: ReadonlySet<string>;
  /** Keys with an unresolved `${…}`, which a lenient load allows; under sinks and sources they keep it. */
  readonly unset: readonly string[];
}

/** A sink or source whose options its module has accepted. */
interface Resolved<Module> {
  readonly name: string;
  readonly module: Module;
  /** The result of `module.parseOptions`. */
  readonly options: unknown;
}

export type ResolvedSink = Resolved<LazySinkModule>;
export type ResolvedSource = Resolved<LazySourceModule>;

/** A config that the modules of its sinks and sources have accepted. */
export interface ResolvedConfig extends LoadedConfig {
  readonly config: DescribedConfig;
  /** By name, without sinks that have an unresolved `${…}`. */
  readonly sinks: ReadonlyMap<string, ResolvedSink>;
  readonly sources: readonly ResolvedSource[];
  /** JSON Schemas of options, by `sinks.<name>` and `sources.<name>`. */
  readonly schemas: ReadonlyMap<string, Written>;
}

/** @throws MillraceError secret_missing when the scheme needs a secret and there is none */
export function requireSecrets(config: Config): void {
  const { scheme, secrets } = config.signing;
  if (scheme === 'none' || secrets.length > 0) return;
  throw new MillraceError('secret_missing', `signing.secrets is empty, and the scheme ${scheme} needs one`);
}
