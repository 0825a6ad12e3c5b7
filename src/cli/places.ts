import { Places } from '../archive/places.ts';
import { configOf, type ConfigFlags } from './config-options.ts';
import type { Io } from './io.ts';

type Settings = ConstructorParameters<typeof Places>[0];

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

/** How stores are reached by a command that may be given a config. */
export function storageOf(flags: ConfigFlags, io: Io): Settings {
  return flags.config === undefined ? null : configOf(flags, io).config.storage;
}
