import { Places } from '../archive/places.ts';

/** Does the work with the archives it opens, in folders and in stores, and closes them. */
export async function withPlaces<T>(work: (places: Places) => Promise<T>): Promise<T> {
  const places = new Places();
  try {
    return await work(places);
  } finally {
    await places.close();
  }
}
