import { Places } from '../archive/places.ts';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { openStore } from '../storage/open.ts';
import { type ConfigFlags, configIfAny } from './config-options.ts';
import type { Io } from './io.ts';

export type Settings = ConstructorParameters<typeof Places>[0];

/**
 * Does the work with the archives it opens, in folders and in stores, and closes them.
 * @param settings how stores are reached; null for the vendors' own defaults
 */
export async function withPlaces<T>(settings: Settings, work: (places: Places) => Promise<T>): Promise<T> {
  const places = new Places(settings);
  try {
    return await work(places);
  } finally {
    await places.close();
  }
}

/** Does the work with the store of a URL, and closes it. */
export async function withStore<T>(
  url: string,
  settings: Settings,
  work: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  const store = await openStore(url, settings ?? undefined);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/**
 * How stores are reached by a command that may do without a config: as the one that is named says, and where a store is
 * meant, the one at the usual place.
 * @param places folders and URLs that the command is given
 */
export function storageOf(flags: ConfigFlags, io: Io, places: readonly (string | undefined)[]): Settings {
  const isAsked =
    flags.config !== undefined || places.some((place) => place !== undefined && isStoreUrl(place));
  return isAsked ? (configIfAny(flags, io)?.config.storage ?? null) : null;
}
