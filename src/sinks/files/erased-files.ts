import { readManifest } from '../../archive/manifest.ts';
import { StorePlace } from '../../archive/store-place.ts';
import { MillraceError } from '../../core/errors.ts';
import type { ObjectStore } from '../../core/storage.ts';

/** Files of an archive in a store that erasures have rewritten or removed, as their lines of the manifest say. @throws StorageError */
export async function erasedFiles(store: ObjectStore): Promise<ReadonlySet<string>> {
  const place = new StorePlace(store.url, () => Promise.resolve(store));
  try {
    const { entries } = await readManifest({ place, manifest: await place.segments() });
    return new Set([...entries].flatMap(([file, line]) => ('erasure' in line ? [file] : [])));
  } catch (error) {
    // What to do about it is said of the sink, as of all that its store answers.
    throw error instanceof MillraceError ? (error.cause ?? error) : error;
  } finally {
    await place.close();
  }
}
