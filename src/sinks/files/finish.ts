import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FileLine } from '../../core/archive-manifest.ts';
import { isMissing, syncFolder } from '../../lib/durable.ts';
import type { Part } from './part.ts';

export const NOT_REMOVED = 'part of a closed file could not be removed';

/** What a line is made of. */
interface Listed extends Pick<Part, 'stats'> {
  readonly place: Pick<Part['place'], 'stem'>;
}

/** The manifest's line of a part's finished file. */
export function lineOf(
  part: Listed,
  file: string,
  written: { readonly bytes: number; readonly sha256: string },
): Omit<FileLine, 'previous'> {
  const { stats } = part;
  return {
    file,
    records: stats.records,
    ...written,
    first_received_at: isoTime(stats.firstReceivedAt, part),
    last_received_at: isoTime(stats.lastReceivedAt, part),
    types: Object.fromEntries(stats.types),
  };
}

/** For good: a power cut would otherwise bring back what an erasure takes out of the finished file next. */
export async function removePart({ path }: Pick<Part, 'path'>): Promise<void> {
  // It can be gone from an earlier try, whose sync failed.
  await rm(path, { force: true });
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      return await syncFolder(folder);
    } catch (error) {
      // Another part that was finished meanwhile was the last in the folder, which is gone with it.
      if (!isMissing(error)) throw error;
    }
  }
}

/** A part none of whose records can be read has no times but the one in its name, that of its first record. */
function isoTime(ms: number, { place }: Listed): string {
  if (Number.isFinite(ms)) return new Date(ms).toISOString();
  const named = place.stem.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)(\d{3}Z).*$/, '$1-$2-$3:$4:$5.$6');
  const time = Date.parse(named);
  return new Date(Number.isNaN(time) ? 0 : time).toISOString();
}
