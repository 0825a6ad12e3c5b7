import { Option } from 'commander';
import type { LoadedConfig, ResolvedConfig } from '../config/config.ts';
import { loadConfig, resolveConfig } from '../config/load.ts';
import { MillraceError } from '../core/errors.ts';
import type { Io } from './io.ts';

// Apart from the other options: commands that need no config would take longer to start, and more memory.

/** `--config <file>` of a command that works by the receiver's config. */
export function configOption(): Option {
  const where = 'the config file (default: $MILLRACE_CONFIG, else config/millrace.yaml)';
  return new Option('--config <file>', where);
}

export interface ConfigFlags {
  readonly config?: string | undefined;
}

/** What most commands take beside options of their own. */
export interface CommonFlags extends ConfigFlags {
  readonly json?: boolean;
}

/** The config that is meant; variables that are not set here are no error. */
export function configOf({ config: file }: ConfigFlags, io: Io): LoadedConfig {
  return loadConfig({ file, env: io.env, lenient: true });
}

/** The same; null when none was named and none is at the usual place. */
export function configIfAny(flags: ConfigFlags, io: Io): LoadedConfig | null {
  try {
    return configOf(flags, io);
  } catch (error) {
    const isMissing = error instanceof MillraceError && error.code === 'config_missing';
    if (flags.config === undefined && isMissing) return null;
    throw error;
  }
}

/** The same config; where its routes redact, with what tells for which target that counts: what the sinks are. */
export async function withRedactions(loaded: LoadedConfig, io: Io): Promise<LoadedConfig> {
  const targets = loaded.config.routes.flatMap(({ to }) => to);
  const redacts = targets.some(({ redactions }) => redactions !== undefined);
  return redacts ? resolvedConfigOf({ config: loaded.file }, io) : loaded;
}

/** As `configOf`, with what its sinks say of themselves. */
export function resolvedConfigOf({ config: file }: ConfigFlags, io: Io): Promise<ResolvedConfig> {
  return resolveConfig({ file, env: io.env, lenient: true });
}
