import { Places } from '../archive/places.ts';
import { readInChunks } from '../archive/read.ts';
import type { DescribedConfig } from '../config/config.ts';
import { parseRecord } from '../core/archive-record.ts';
import type { ErasableStore, ErasureRun } from '../core/erasure.ts';
import { isStoreUrl } from '../core/place.ts';
import { realPath } from '../lib/real-path.ts';
import { mayBeThere } from './outputs.ts';

/**
 * Archives whose heads were noted and that are in none of the places that are searched: sinks of earlier configs wrote them, or
 * replays. What is gone is left out.
 * @param noted absolute paths and URLs
 */
export function earlierArchives(noted: readonly string[], searched: Iterable<string>): string[] {
  const roots = Array.from(searched, realOf);
  const isSearched = (path: string): boolean =>
    roots.some((root) => `${realOf(path)}/`.startsWith(`${root}/`));
  return noted.filter((path) => mayBeThere(path) && !isSearched(path));
}

function realOf(path: string): string {
  return isStoreUrl(path) ? path : realPath(path);
}

/** The same archive; sealed files of it stand on the receipt, as no sink of today has their keys. */
export function withoutKeys(
  store: ErasableStore,
  path: string,
  storage: DescribedConfig['storage'],
): ErasableStore {
  const erase = async (run: ErasureRun): Promise<void> => {
    await store.erase(run);
    const sealed = await sealedFile(path, storage, run.signal);
    if (sealed === null) return;
    const reason = `sealed records, such as those of ${sealed}, of a sink that is not in the config: give it back with its keys, or remove the archive`;
    run.leave({ store: store.name, item: store.name, requests: [], reason });
  };
  return { name: store.name, erase };
}

/** The first file that begins with a sealed record; null when none does. */
async function sealedFile(
  path: string,
  storage: DescribedConfig['storage'],
  signal: AbortSignal,
): Promise<string | null> {
  const places = new Places(storage);
  try {
    const place = await places.open(path);
    const { files, parts } = await place.list();
    for (const file of [...files, ...parts])
      for await (const items of readInChunks(place, file, parseRecord, { signal })) {
        const [first] = items;
        if (first?.kind === 'problem' && first.sealed !== undefined) return file;
        break;
      }
    return null;
  } finally {
    await places.close();
  }
}
