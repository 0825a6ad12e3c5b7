import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST } from '../../../src/core/archive.ts';
import type { Compression } from '../../../src/core/compression.ts';
import type { ErasableStore } from '../../../src/core/erasure.ts';
import type { Signer } from '../../../src/core/signature.ts';
import type { Delivery } from '../../../src/core/sink.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import type { LocalErasures, LocalErasuresOptions } from '../../../src/privacy/erase/local-erasures.ts';
import { openObjects } from '../../../src/privacy/erase/open-objects.ts';
import { placeErasure, type PlaceErasureOptions } from '../../../src/privacy/erase/place-erasure.ts';
import type { FilesSink } from '../../../src/sinks/files/sink.ts';
import { openStore } from '../../../src/storage/open.ts';
import { layOut } from '../../archive/store-archive.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { erasuresOver, eventOf, FIELDS, folderStore, QUIET } from './support.ts';

export const NAME = 's3://made-up/archive';
export const USERS = [1, 2, 3, 4];

/** An archive in a store with events of four users in each of its files, and a kept event of each. */
export async function makeErasable(
  store: ObjectStore,
  folder: string,
  {
    signer,
    compressions = ['gzip'],
  }: {
    readonly signer?: Signer;
    /** Of its files, in turn. */
    readonly compressions?: readonly Compression[];
  } = {},
): Promise<void> {
  for (const [nth, compress] of compressions.entries()) {
    const batches: Delivery[][] = [];
    for (let n = nth; n < 4; n += compressions.length)
      batches.push(batchOf(...USERS.map((user) => eventOf(user, n, { headers: {} }))));
    const kept = nth > 0 ? [] : USERS.map((user) => eventOf(user, 9, { headers: {} }));
    await writeFiles(folder, batches, { options: { compress, rotate: { bytes: 1500 } }, kept });
  }
  const lines = readFileSync(join(folder, MANIFEST), 'utf8').trimEnd().split('\n');
  const files = lines.map((line) => (JSON.parse(line) as { file: string }).file);
  await layOut(store, { path: folder, lines, files }, signer);
}

/** What an erasure searches in a store. @param folder that of the erasures */
export function objectsIn(
  folder: string,
  openStoreOf: () => Promise<ObjectStore>,
  { isArchive = true, ...more }: Partial<PlaceErasureOptions> & { readonly isArchive?: boolean } = {},
): ErasableStore {
  const open = openObjects({ open: openStoreOf, isArchive, exclude: [], folder, log: QUIET });
  return placeErasure({ name: NAME, open, fields: FIELDS, ...more });
}

/** Erasures as a receiver has them of a sink's spool and store, below this folder; without a sink, as a command does. */
export function spoolErasures(
  path: string,
  sink: FilesSink | null,
  spool = join(path, 'spool'),
): LocalErasures {
  const settle = async (holds: (file: string) => Promise<boolean>): Promise<void> => sink?.settle(holds);
  const shared = sink === null ? {} : { settle };
  const folder = join(path, 'erasure');
  const stores = [
    folderStore(spool, [], { name: 'spool', ...shared }),
    objectsIn(folder, () => openStore(join(path, 'store')), shared),
  ];
  return erasuresOver(folder, stores).erasures;
}

/** Erasures of one installation over a store: a folder, or what opens one. */
export function erasing(
  folder: string,
  path: string | (() => Promise<ObjectStore>),
  more: Partial<LocalErasuresOptions> = {},
  wrap: (store: ObjectStore) => ObjectStore = (store) => store,
): LocalErasures {
  const open = async () => wrap(await (typeof path === 'string' ? openStore(path) : path()));
  return erasuresOver(folder, [objectsIn(folder, open)], more).erasures;
}
