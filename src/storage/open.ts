import { resolve } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { parsePlace, type StoreScheme } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { lackOf } from '../lib/installed.ts';
import type { Driver, Environment } from './driver.ts';
import { storageSection, type StorageSettings } from './fields.ts';
import { packagesOf } from './packages.ts';
import { RemoteStore } from './remote-store.ts';

interface Vendor {
  /** Loaded on demand: whoever uses no store of a vendor loads none of that vendor's code. */
  load(): Promise<{
    openDriver(bucket: string, settings: StorageSettings, env: Environment): Promise<Driver> | Driver;
  }>;
}

const VENDORS: Readonly<Record<StoreScheme, Vendor>> = {
  s3: { load: () => import('./s3/store.ts') },
  azblob: { load: () => import('./azblob/store.ts') },
  gs: { load: () => import('./gs/store.ts') },
};

/**
 * Opens a place for files; asks nothing of it yet.
 * @param place as `parsePlace` reads it
 * @param settings those of the config; plain data
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
  const vendor = VENDORS[scheme];
  const lack = lackOf(packagesOf(place));
  if (lack !== null) throw new MillraceError('usage', `${scheme}:// ${lack}`);
  const { openDriver } = await vendor.load();
  const driver = await openDriver(bucket, settings, process.env);
  const { timeout, tries } = settings;
  // Google takes no others but the last.
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
