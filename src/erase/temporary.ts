import { hash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';

/**
 * Where a file is written anew before it takes the old one's place: the same for the same file, so that what a crash left
 * is overwritten by the next run, and without the extension that readers of the folder look for.
 */
export function temporaryPath(path: string): string {
  return join(dirname(path), `.erase-${hash('sha256', basename(path), 'hex').slice(0, 16)}.tmp`);
}
