import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Places, urlOf } from '../../archive/places.ts';
import { readInChunks } from '../../archive/read.ts';
import { parseRecord } from '../../core/archive-record.ts';
import { MANIFEST, OPEN_FOLDER } from '../../core/archive.ts';
import type { ErasableStore, ErasureRun } from '../../core/erasure.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { NotedArchive } from '../../core/proof.ts';
import { realPath } from '../../lib/real-path.ts';
import type { StorageSettings } from '../../storage/fields.ts';
import type { Missing } from './open-folder.ts';

/** A noted archive, or a spool of one, that is in none of the places of a config. */
export interface EarlierPlace {
  readonly path: string;
  readonly archive: NotedArchive;
}

/**
 * Noted archives and their spools, reachable or not, that are in none of the places of a config: sinks of earlier configs or
 * replays wrote them.
 * @param places absolute paths and URLs
 */
export function earlierPlaces(noted: readonly NotedArchive[], places: Iterable<string>): EarlierPlace[] {
  const roots = Array.from(places, realOf);
  // A missing folder is not searched with the folder around it.
  const isAmong = (path: string): boolean =>
    roots.some((root) => realOf(path) === root || (mayBeThere(path) && realOf(path).startsWith(`${root}/`)));
  return noted.flatMap((archive) =>
    [archive.place, ...archive.spools].flatMap((path) => (isAmong(path) ? [] : [{ path, archive }])),
  );
}

/** Whether a place is there; true for a store, which is not asked. */
function mayBeThere(place: string): boolean {
  return isStoreUrl(place) || existsSync(place);
}

/** Why a noted place counts as missing, and what to do; null when it is there, or in a store. Without its mount a folder can be empty. */
export function missingPlace({ path, archive }: EarlierPlace): Error | null {
  if (isStoreUrl(path)) return null;
  const first = path === archive.place ? MANIFEST : OPEN_FOLDER;
  if (existsSync(join(path, first))) return null;
  const notes = archive.notes.join(' and ');
  return new Error(
    `${path} does not hold the ${first} that was written there: bring it back (is its disk mounted?), or remove ${notes} if it was deleted permanently`,
  );
}

/** The same for a folder that need not be an archive. @param remedy how the user says that it was deleted permanently */
export function missingFolder(path: string, remedy: string, waits: boolean): Missing | null {
  if (mayBeThere(path)) return null;
  const how = `bring it back (is its disk mounted?), or ${remedy} if it was deleted permanently`;
  return { error: new Error(`it is not there: ${how}`), waits };
}

/** Reports notes with an untrusted signature: their archives are not searched. */
export function unreadNotes(forged: readonly string[]): ErasableStore[] {
  const reason =
    'it is not signed by a key of proof.trust, so the archive that it notes is not searched; trust the earlier key, or remove it if that archive was deleted permanently';
  const erase = async (run: ErasureRun): Promise<void> => {
    for (const item of forged) run.leave({ store: 'erasure.path', item, requests: [], reason });
  };
  return forged.length === 0 ? [] : [{ name: 'erasure.path', erase }];
}

/** The real path of a folder, or the URL of a store: the same for the same place. */
export function realOf(path: string): string {
  return isStoreUrl(path) ? urlOf(path) : realPath(path);
}

/** The same archive, which also reports sealed files: no sink of the config has their keys. */
export function withoutKeys(store: ErasableStore, path: string, storage: StorageSettings): ErasableStore {
  const erase = async (run: ErasureRun): Promise<void> => {
    await store.erase(run);
    if (!mayBeThere(path)) return;
    const sealed = await sealedFile(path, storage, run.signal);
    if (sealed === null) return;
    const reason = `sealed records, such as those of ${sealed}, of a sink that is not in the config: give it back with its keys, or remove the archive`;
    run.leave({ store: store.name, item: store.name, requests: [], reason });
  };
  return { name: store.name, erase };
}

/** The first file that begins with a sealed record, or null. */
async function sealedFile(
  path: string,
  storage: StorageSettings,
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
