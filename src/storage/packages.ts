import { parsePlace, type StoreScheme } from '../core/place.ts';

const PACKAGES: Readonly<Record<StoreScheme, readonly string[]>> = {
  s3: ['@aws-sdk/client-s3'],
  azblob: ['@azure/storage-blob', '@azure/identity'],
  gs: ['google-auth-library'],
};

/** Optional packages that a place needs. @throws as `parsePlace` */
export function packagesOf(place: string): readonly string[] {
  const { scheme } = parsePlace(place);
  return scheme === 'folder' ? [] : PACKAGES[scheme];
}
