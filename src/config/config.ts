import type { Route } from '../core/route.ts';
import { MillraceError } from '../core/errors.ts';
import type { LazySinkModule, SinkDescription } from '../core/sink.ts';
import type { Written } from '../lib/parse-options.ts';
import type { LazySourceModule } from '../core/source.ts';
import type { SinkConfig } from './lists.ts';
import type { Values } from './parse.ts';

/** The whole config, checked. Durations are milliseconds, sizes are bytes, absent optional texts are `null`. */
export interface Config extends Omit<Values, 'routes' | 'signing'> {
  /** `teams` says for each of `secrets` whose events it may sign; null for those of every team. */
  readonly signing: Omit<Values['signing'], 'secrets'> & {
    readonly secrets: readonly string[];
    readonly teams: readonly (readonly string[] | null)[];
  };
  readonly routes: readonly Route[];
}

/** A config whose sinks have said what they are. */
export interface DescribedConfig extends Config {
  readonly sinks: Readonly<Record<string, SinkConfig & { readonly description: SinkDescription }>>;
}

export interface LoadedConfig {
  readonly config: Config;
  /** Path of the file as it was given; its folder is the base of own sink modules. */
  readonly file: string;
  /** One sentence each, naming the key. */
  readonly warnings: readonly string[];
  /** Keys whose values came from the environment or a file by `${…}`; redact.ts hides them. */
  readonly substituted: ReadonlySet<string>;
  /** Keys whose `${…}` could not be resolved; only ever filled when lenient. Under sinks and sources the `${…}` is still there. */
  readonly unset: readonly string[];
}

/** A sink whose options its module has accepted; ready for `createSink(options, …)` of what `module.load` loads. */
export interface ResolvedSink {
  readonly name: string;
  readonly module: LazySinkModule;
  /** What `module.parseOptions` returned. */
  readonly options: unknown;
}

/** A source whose options its module has accepted; ready for `createSource(options, …)` in the same way. */
export interface ResolvedSource {
  readonly name: string;
  readonly module: LazySourceModule;
  readonly options: unknown;
}

/** A config that the modules of its sinks and sources have accepted too. */
export interface ResolvedConfig extends LoadedConfig {
  readonly config: DescribedConfig;
  /** By name. Without those that hold a `${…}` that cannot be resolved: their modules cannot judge it. */
  readonly sinks: ReadonlyMap<string, ResolvedSink>;
  readonly sources: readonly ResolvedSource[];
  /** JSON Schemas of options, by `sinks.<name>` and `sources.<name>`. */
  readonly schemas: ReadonlyMap<string, Written>;
}

/**
 * @throws MillraceError secret_missing when the scheme needs a secret and there is none.
 */
export function requireSecrets(config: Config): void {
  const { scheme, secrets } = config.signing;
  if (scheme === 'none' || secrets.length > 0) return;
  throw new MillraceError('secret_missing', `signing.secrets is empty, and the scheme ${scheme} needs one`);
}
