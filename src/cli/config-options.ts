import type { LoadedConfig, ResolvedConfig, Config } from '../config/config.ts';
import { NoConfig } from '../config/file.ts';
import { loadConfig, resolveConfig, salvageConfig } from '../config/load.ts';
import { unknownPrefixes } from '../config/routes.ts';
import { MillraceError } from '../core/errors.ts';
import { type Io, note } from './io.ts';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ownerFolder, readOwner } from '../journal/owner.ts';
import { bracketed, callable } from '../lib/listen.ts';
import { isRunning } from '../lib/lock-owner.ts';

// Not in options.ts: commands without a config start faster without these imports.

/** For commands that use the receiver's config. */
export const CONFIG = {
  '--config <file>': 'the config file (default: $MILLRACE_CONFIG, else config/millrace.yaml)',
};

export interface ConfigFlags {
  readonly config?: string | undefined;
}

/** The config of --config, else the usual one. Unset variables are no error. */
export function configOf({ config: file }: ConfigFlags, io: Io): LoadedConfig {
  return loadConfig({ file, env: io.env, lenient: true });
}

/** The same; null when none is named and there is none at the usual place. @throws as configOf */
export function configIfAny(flags: ConfigFlags, io: Io, read = configOf): LoadedConfig | null {
  try {
    return read(flags, io);
  } catch (error) {
    if (error instanceof NoConfig) return null;
    throw error;
  }
}

/** Resolves the sinks of a config whose routes redact: redaction depends on the type of the sink. */
export async function withRedactions(loaded: LoadedConfig, io: Io): Promise<LoadedConfig> {
  const targets = loaded.config.routes.flatMap(({ to }) => to);
  const redacts = targets.some(({ redactions }) => redactions !== undefined);
  return redacts ? resolvedConfigOf({ config: loaded.file }, io) : loaded;
}

/** As `configOf`, with the descriptions of its sinks. */
export function resolvedConfigOf({ config: file }: ConfigFlags, io: Io): Promise<ResolvedConfig> {
  return resolveConfig({ file, env: io.env, lenient: true });
}

/** Warnings for prefixes that are probably mistyped, without those of types that the running receiver has seen. */
export async function prefixWarnings(config: Config): Promise<readonly string[]> {
  const warnings = unknownPrefixes(config.routes);
  if (warnings.length === 0) return warnings;
  // Loaded late, because most configs have none.
  const { AdminClient } = await import('./admin-client.ts');
  const report = AdminClient.of(config)?.operations().schema();
  const { types } = (await report?.catch(() => undefined)) ?? { types: [] };
  const seen = types.map(({ type }) => type);
  return unknownPrefixes(config.routes, seen);
}

/** Config of `millrace dev` in its default folder. */
export const DEV = 'data/dev/millrace.yaml';

/**
 * The config of the receiver to ask: --config, else the usual config, else the config of `millrace dev` when that runs in this
 * folder and no other receiver does.
 * @param isQuiet does not say that `millrace dev` is asked
 * @throws as configOf
 */
export function receiverConfigOf(flags: ConfigFlags, io: Io, isQuiet = false): LoadedConfig {
  return receiverConfigIfAny(flags, io, isQuiet) ?? configOf(flags, io);
}

/**
 * As `configOf`; for a file that cannot be used, what leads to the receiver that runs with an earlier version of it, with a warning.
 * @throws as configOf when no receiver does
 */
export function runningConfigOf(flags: ConfigFlags, io: Io, isQuiet = false): LoadedConfig {
  try {
    return configOf(flags, io);
  } catch (error) {
    if (!(error instanceof MillraceError) || !error.code.startsWith('config_')) throw error;
    for (const loaded of salvageConfig({ file: flags.config, env: io.env })) {
      const owner = readOwner(ownerFolder(loaded.config));
      const inForce = owner?.config ?? null;
      if (owner === null || !isRunning(owner.pid) || inForce?.file !== resolve(loaded.file)) continue;
      const where = `${loaded.file} as it was at ${inForce.since} is in force in process ${owner.pid}`;
      if (!isQuiet) note(io, `warning: ${where}; it cannot be used now, \`millrace check\` says why`);
      return loaded;
    }
    throw error;
  }
}

/** The same; null when none is named and there is none. @throws as configOf */
export function receiverConfigIfAny(flags: ConfigFlags, io: Io, isQuiet = false): LoadedConfig | null {
  if (flags.config !== undefined || (io.env['MILLRACE_CONFIG'] ?? '') !== '')
    return runningConfigOf(flags, io, isQuiet);
  const usual = configIfAny(flags, io, () => runningConfigOf(flags, io, isQuiet));
  if ((usual !== null && isServed(usual.config)) || !existsSync(DEV)) return usual;
  // Without the environment, as `dev` reads it.
  const dev = loadConfig({ file: DEV, env: {}, lenient: true });
  if (!isServed(dev.config)) return usual;
  if (!isQuiet) note(io, `asking the receiver of millrace dev (${DEV})`);
  return dev;
}

/** Whether a running process serves this config. */
export function isServed(config: Config): boolean {
  const owner = readOwner(ownerFolder(config));
  return owner !== null && owner.admin !== null && isRunning(owner.pid);
}

/** URL for deliveries: from the running receiver, else from the config. */
export function receiverUrlOf(config: Config): string {
  const { host, port, path } = config.server;
  return callable(readOwner(ownerFolder(config))?.url ?? `http://${bracketed(host)}:${port}${path}`);
}
