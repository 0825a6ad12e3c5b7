import type { StoreScheme } from '../../../src/core/place.ts';
import { storageSection, type StorageSettings } from '../../../src/storage/fields.ts';
import { afterAll } from 'vitest';
import { describeUnless } from '../describe-unless.ts';
import type { Lack } from '../requirements.ts';
import { startAzureBlob } from '../azurite.ts';
import { lacksFakeGcs, startFakeGcs } from './fake-gcs.ts';
import { lacksMoto, startMoto } from './moto.ts';

/** A vendor's store, or a stand-in of it, in a process of its own. */
export interface Emulator {
  /** `http://127.0.0.1:port`, for a proxy in front of it. */
  readonly url: string;
  /** As written in a config's `storage:`; reached by another address where one is given, such as a proxy's. */
  settings(endpoint?: string): object;
  /** A bucket or container of the test's own, made and empty. @returns its URL, such as `s3://name` */
  bucket(name: string): Promise<string>;
  stop(): Promise<void>;
}

/** Every store that is not a folder. */
const EMULATORS: Readonly<Record<StoreScheme, { lack(): Lack; start(): Promise<Emulator> }>> = {
  s3: { lack: lacksMoto, start: startMoto },
  azblob: { lack: () => null, start: startAzureBlob },
  gs: { lack: lacksFakeGcs, start: startFakeGcs },
};

/** Tests against each of these stores that can be run here; the others are skipped, with the reason in the title. */
export function describeOnStores(
  title: string,
  body: (emulator: Emulator, scheme: string) => void | Promise<void>,
  schemes = Object.keys(EMULATORS) as readonly StoreScheme[],
): void {
  for (const scheme of schemes) {
    const { lack, start } = EMULATORS[scheme];
    describeUnless(lack(), `${scheme}${title}`, () => withEmulator(scheme, start, body));
  }
}

async function withEmulator(
  scheme: string,
  start: () => Promise<Emulator>,
  body: (emulator: Emulator, scheme: string) => void | Promise<void>,
): Promise<void> {
  const emulator = await start();
  afterAll(() => emulator.stop());
  // Other files make theirs in the same program.
  const bucket = (name: string): Promise<string> =>
    emulator.bucket(`${name}-${process.pid}-${(buckets += 1)}`);
  await body({ ...emulator, bucket }, scheme);
}

let buckets = 0;

/** What a config's `storage:` becomes. */
export function storageSettings(written: object): StorageSettings {
  return storageSection.parse(written);
}
