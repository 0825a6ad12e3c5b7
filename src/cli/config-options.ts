import type { LoadedConfig, ResolvedConfig, Config } from '../config/config.ts';
import { loadConfig, resolveConfig } from '../config/load.ts';
import { MillraceError } from '../core/errors.ts';
import { type Io, note } from './io.ts';
import { existsSync } from 'node:fs';
import { ownerFolder, readOwner } from '../journal/owner.ts';
import { bracketed, callable } from '../lib/listen.ts';
import { isRunning } from '../lib/lock-owner.ts';

// Apart from options.ts: commands that need no config would take longer to start, and more memory.

/** `--config <file>` of a command that works by the receiver's config. */
export const CONFIG = {
  '--config <file>': 'the config file (default: $MILLRACE_CONFIG, else config/millrace.yaml)',
};

export interface ConfigFlags {
  readonly config?: string | undefined;
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

/** Where `millrace dev` keeps its config, unless it was given another folder. */
export const DEV = 'data/dev/millrace.yaml';

/**
 * The config of the receiver that a command talks to: the one that is named, else the usual one, else that of `millrace dev`
 * while it runs in this folder and no other receiver does.
 * @param isQuiet whether it goes without saying which one that is
 * @throws as configOf
 */
export function receiverConfigOf(flags: ConfigFlags, io: Io, isQuiet = false): LoadedConfig {
  return receiverConfigIfAny(flags, io, isQuiet) ?? configOf(flags, io);
}

/** The same; null when none was named and there is none. */
export function receiverConfigIfAny(flags: ConfigFlags, io: Io, isQuiet = false): LoadedConfig | null {
  if (flags.config !== undefined || (io.env['MILLRACE_CONFIG'] ?? '') !== '') return configOf(flags, io);
  const usual = configIfAny(flags, io);
  if ((usual !== null && isServed(usual.config)) || !existsSync(DEV)) return usual;
  // As `dev` reads it: what is meant for production has no place there.
  const dev = loadConfig({ file: DEV, env: {}, lenient: true });
  if (!isServed(dev.config)) return usual;
  if (!isQuiet) note(io, `asking the receiver of millrace dev (${DEV})`);
  return dev;
}

/** Whether a process that lives has said that it serves this config. */
function isServed(config: Config): boolean {
  const owner = readOwner(ownerFolder(config));
  return owner !== null && owner.admin !== null && isRunning(owner.pid);
}

/** Where deliveries of that receiver go, as it has said, or as the config says. */
export function receiverUrlOf(config: Config): string {
  const { host, port, path } = config.server;
  return callable(readOwner(ownerFolder(config))?.url ?? `http://${bracketed(host)}:${port}${path}`);
}
