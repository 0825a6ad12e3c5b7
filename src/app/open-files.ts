import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { DescribedConfig } from '../config/config.ts';

/** The journal, the log, the listeners, connections of the other sinks, and what Node itself needs. */
const FOR_THE_REST = 200;

type Users = Pick<DescribedConfig, 'server' | 'sinks'>;

/**
 * How many connections there may be: those of the config, or fewer where the system allows too few open files for them. A
 * process at that limit accepts nothing, and cannot open its own files either.
 */
export function mostConnections(config: Users, allowed = filesAllowed()): number {
  const { maxConnections } = config.server;
  const left = allowed - filesBeside(config);
  return Math.min(maxConnections, Math.max(left, Math.floor(allowed / 4), 1));
}

export function warnOfFewFiles(config: Users, log: Pick<Logger, 'warn'>): void {
  const { maxConnections } = config.server;
  const allowed = filesAllowed();
  const needed = maxConnections + filesBeside(config);
  if (allowed >= needed) return;
  const most = mostConnections(config, allowed);
  const advice = `the limit of open files is low, so that at most ${most} connections are kept: raise ulimit -n to ${needed} (LimitNOFILE=${needed} of the service), or lower server.maxConnections`;
  log.warn({ allowed, needed, maxConnections }, advice);
}

/** Files that may be open beside connections when everything is as full as the config lets it be. */
function filesBeside({ sinks }: Users): number {
  const forSinks = Object.values(sinks).reduce(
    (sum, { description }) => sum + (description.openFiles ?? 0),
    0,
  );
  return forSinks + FOR_THE_REST;
}

/** How many the system allows this process, as Linux tells it; Infinity where it does not, or sets no limit. */
function filesAllowed(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
