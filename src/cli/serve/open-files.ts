import { readFileSync } from 'node:fs';
import type { DescribedConfig } from '../../config/config.ts';

/** The journal, the log, the listeners, connections of the other sinks, and what Node itself needs. */
const FOR_THE_REST = 200;

/** Files that may be open at once when everything is as full as the config lets it be. */
export function filesNeeded({ server, sinks }: Pick<DescribedConfig, 'server' | 'sinks'>): number {
  const forSinks = Object.values(sinks).reduce(
    (sum, { description }) => sum + (description.openFiles ?? 0),
    0,
  );
  return server.maxConnections + forSinks + FOR_THE_REST;
}

/** How many the system allows this process, as Linux tells it; null where it does not, or sets no limit. */
export function filesAllowed(): number | null {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}
