import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Later ones are not complete on Maven Central. */
export const KAFKA_VERSION = '4.2.0';
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'millrace');

/** Where the broker's programs and what they need lie, once installed: about 43 MB. */
export const KAFKA_LIBRARIES = join(CACHE, `kafka-${KAFKA_VERSION}`);
/** The classes of a broker as Java has read them: about 50 MB, and nearly half of a start less. Another Java leaves it alone. */
export const KAFKA_CLASSES = join(CACHE, `kafka-${KAFKA_VERSION}.jsa`);

/**
 * What `java` takes for a broker's programs: small and quick to start, as nothing here runs for long.
 * @param more behind the libraries on the class path
 */
export function javaFlags(...more: readonly string[]): string[] {
  const classes = existsSync(KAFKA_CLASSES)
    ? [`-XX:SharedArchiveFile=${KAFKA_CLASSES}`, '-Xlog:disable']
    : [];
  const path = [`${KAFKA_LIBRARIES}/*`, ...more].join(':');
  return ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', ...classes, '-cp', path];
}
