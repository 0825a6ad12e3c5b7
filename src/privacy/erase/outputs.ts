import { join, resolve } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { makeFolder } from '../../lib/durable.ts';
import { appendJsonLine } from '../../lib/json-lines.ts';
import { erasureLines } from './erased-list.ts';

/**
 * In the erasure folder: a line `{"place"}` for each, an absolute path or the URL of an object store. It can be removed by hand when
 * its place is gone.
 */
export const OUTPUTS = 'outputs.jsonl';

/** Notes places outside the config where tables of users will be written, so that erasures search them. */
export async function noteOutputs(folder: string, places: readonly string[]): Promise<void> {
  const file = join(folder, OUTPUTS);
  const known = new Set(notedIn(file));
  for (const written of places) {
    const place = isStoreUrl(written) ? written : resolve(written);
    if (known.has(place)) continue;
    makeFolder(folder, 0o700);
    await appendJsonLine(file, { place });
  }
}

/** Noted places, there or not. @throws MillraceError erasure_unreadable */
export function outputsOf(folder: string): string[] {
  return notedIn(join(folder, OUTPUTS));
}

function notedIn(file: string): string[] {
  return erasureLines<{ readonly place?: string }>(file).map(({ place }) => {
    if (place === undefined)
      throw new MillraceError('erasure_unreadable', `${file}: a line does not say which place it notes`);
    return place;
  });
}
