import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';

/** Part files that a files sink holds open, and what it opens beside them. */
const FOR_A_FILES_SINK = 80;
/** The journal, the log, the listeners, connections of the other sinks, and what Node itself needs. */
const FOR_THE_REST = 200;

/** Files that may be open at once when everything is as full as the config lets it be. */
export function filesNeeded({ server, sinks }: Pick<Config, 'server' | 'sinks'>): number {
  const archives = Object.values(sinks).filter(({ type }) => type === 'files').length;
  return server.maxConnections + archives * FOR_A_FILES_SINK + FOR_THE_REST;
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
