import type { Route } from '../core/route.ts';
import { MillraceError } from '../core/errors.ts';
import type { Requirement, SinkConfig, SourceConfig } from './lists.ts';
import type { Scalars } from './parse-scalars.ts';

/** The whole config, checked. Durations are milliseconds, sizes are bytes, absent optional texts are `null`. */
export interface Config extends Omit<Scalars, 'signing' | 'envelope'> {
  readonly signing: Scalars['signing'] & { readonly secrets: readonly string[] };
  readonly envelope: Scalars['envelope'] & { readonly require: readonly Requirement[] };
  readonly sinks: Readonly<Record<string, SinkConfig>>;
  readonly sources: Readonly<Record<string, SourceConfig>>;
  readonly routes: readonly Route[];
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

/**
 * @throws MillraceError secret_missing when the scheme needs a secret and there is none.
 */
export function requireSecrets(config: Config): void {
  const { scheme, secrets } = config.signing;
  if (scheme === 'none' || secrets.length > 0) return;
  throw new MillraceError('secret_missing', `signing.secrets is empty, and the scheme ${scheme} needs one`);
}
