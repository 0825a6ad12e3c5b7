import { resolve } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { parsePlace, type StoreScheme } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { lackOf } from '../lib/installed.ts';
import type { Driver, Environment } from './driver.ts';
import { storageSection, type StorageSettings } from './fields.ts';
import { packagesOf } from './packages.ts';
import { RemoteStore } from './remote-store.ts';

interface VendorModule {
  openDriver(bucket: string, settings: StorageSettings, env: Environment): Promise<Driver> | Driver;
}

/** Loaded on demand, so that a process loads the code of its own vendors only. */
const VENDORS: Readonly<Record<StoreScheme, () => Promise<VendorModule>>> = {
  s3: () => import('./s3/store.ts'),
  azblob: () => import('./azblob/store.ts'),
  gs: () => import('./gs/store.ts'),
};

/**
 * Opens a place for files, without a request.
 * @param place a folder or URL, as `parsePlace` reads it
 * @throws MillraceError usage for a place of an unknown kind, or a package that is not installed
 */
export async function openStore(
  place: string,
  settings: StorageSettings = storageSection.parse(undefined),
): Promise<ObjectStore> {
  const parsed = parsePlace(place);
  if (parsed.scheme === 'folder') {
    const { FolderStore } = await import('./folder/store.ts');
    return new FolderStore(resolve(parsed.path));
  }
  const { scheme, bucket, prefix } = parsed;
  const lack = lackOf(packagesOf(place));
  if (lack !== null) throw new MillraceError('usage', `${scheme}:// ${lack}`);
  const { openDriver } = await VENDORS[scheme]();
  const driver = await openDriver(bucket, settings, process.env);
  const { timeout, tries } = settings;
  // Google accepts other sizes for the last part only.
  const partBytes = settings.partBytes - (settings.partBytes % (256 * 1024));
  const url = `${scheme}://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
  return new RemoteStore(driver, {
    url,
    prefix: prefix === '' ? '' : `${prefix}/`,
    timeout,
    tries,
    partBytes,
  });
}
