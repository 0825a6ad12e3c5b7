import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Name of the segment that a new journal begins with. */
export const FIRST_SEGMENT = 'events-0000000000000001-0000000000000001.seg';

/** Paths of a journal's segments, the oldest first. */
export function segmentsOf(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.seg'));
  return names.toSorted().map((name) => join(folder, name));
}

/** Path of the segment that is written to, or will be. */
export function newestSegment(folder: string): string {
  return (existsSync(folder) ? segmentsOf(folder).at(-1) : undefined) ?? join(folder, FIRST_SEGMENT);
}
