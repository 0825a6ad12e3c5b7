import { existsSync } from 'node:fs';
import type { Config, LoadedConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { ownerFolder, readOwner } from '../journal/owner.ts';
import { bracketed, callable } from '../lib/listen.ts';
import { isRunning } from '../lib/lock-owner.ts';
import { configIfAny, configOf, type ConfigFlags } from './config-options.ts';
import { note, type Io } from './io.ts';

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
