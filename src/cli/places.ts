import { Places } from '../archive/places.ts';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { openStore } from '../storage/open.ts';
import { type ConfigFlags, configIfAny } from './config-options.ts';
import { closing, type Io } from './io.ts';

/** How object stores are reached; null uses the vendors' defaults. */
export type Settings = NonNullable<ConstructorParameters<typeof Places>[0]> | null;

/** Runs `work` on the archives at these paths and URLs. The config says how stores are reached. */
export function withArchives<T>(
  paths: readonly string[],
  flags: ConfigFlags,
  io: Io,
  work: (places: Places) => Promise<T>,
): Promise<T> {
  return withPlaces(storageOf(flags, io, paths), work);
}

/** Runs `work` with a cache of open archives, which is closed afterwards. */
export async function withPlaces<T>(settings: Settings, work: (places: Places) => Promise<T>): Promise<T> {
  await using places = closing(new Places(settings));
  return await work(places);
}

/** Runs `work` with the store of a URL, and closes it. */
export async function withStore<T>(
  url: string,
  settings: Settings,
  work: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  await using store = closing(await openStore(url, settings ?? undefined));
  return await work(store);
}

/** The storage section of the config that --config names or, when one of the places is a URL, of the usual config. */
export function storageOf(flags: ConfigFlags, io: Io, places: readonly (string | undefined)[]): Settings {
  const needsConfig =
    flags.config !== undefined || places.some((place) => place !== undefined && isStoreUrl(place));
  return needsConfig ? (configIfAny(flags, io)?.config.storage ?? null) : null;
}
