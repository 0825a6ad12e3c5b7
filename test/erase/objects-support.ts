import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { MANIFEST } from '../../src/core/archive.ts';
import type { Compression } from '../../src/core/compression.ts';
import type { Signer } from '../../src/core/signature.ts';
import type { ObjectStore } from '../../src/core/storage.ts';
import { ErasedUsers } from '../../src/erase/erased-users.ts';
import { LocalErasures, type LocalErasuresOptions } from '../../src/erase/local-erasures.ts';
import { ObjectErasure } from '../../src/erase/object-store.ts';
import { openProof } from '../../src/proof/open.ts';
import { openStore } from '../../src/storage/open.ts';
import { layOut } from '../archive/store-archive.ts';
import { filesSink, signal } from '../sinks/support.ts';
import { eventOf, FIELDS, QUIET } from './support.ts';

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
    const { sink } = filesSink(folder, { compress, rotate: { bytes: 1500 } });
    await sink.open();
    for (let n = nth; n < 4; n += compressions.length)
      await sink.send(
        USERS.map((user) => ({ event: eventOf(user, n, { headers: {} }), destination: null })),
        signal,
      );
    if (nth === 0) for (const user of USERS) await sink.keep(eventOf(user, 9, { headers: {} }));
    await sink.close(signal);
  }
  const lines = readFileSync(join(folder, MANIFEST), 'utf8').trimEnd().split('\n');
  const files = lines.map((line) => (JSON.parse(line) as { file: string }).file);
  await layOut(store, { path: folder, lines, files }, signer);
}

/** Erasures of one installation over a store: a folder, or what opens one. */
export function erasing(
  folder: string,
  path: string | (() => Promise<ObjectStore>),
  more: Partial<LocalErasuresOptions> = {},
  wrap: (store: ObjectStore) => ObjectStore = (store) => store,
): LocalErasures {
  const store = new ObjectErasure({
    name: NAME,
    open: async () => wrap(await (typeof path === 'string' ? openStore(path) : path())),
    isArchive: true,
    exclude: [],
    fields: FIELDS,
    folder,
    log: QUIET,
  });
  return new LocalErasures({
    folder,
    grace: 0,
    users: ErasedUsers.open(folder),
    stores: () => Promise.resolve([store]),
    proof: openProof({
      erasure: { path: folder },
      proof: { key: null, trust: [] },
      receipts: { path: null },
    }),
    clock: systemClock,
    log: QUIET,
    signal: new AbortController().signal,
    ...more,
  });
}
