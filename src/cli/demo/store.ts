import { randomBytes } from 'node:crypto';
import { urlOf } from '../../archive/places.ts';
import { messageOf, MillraceError } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { openStore } from '../../storage/open.ts';
import { storageSection, type StorageSettings } from '../../storage/fields.ts';
import { note, usageError, type Io } from '../io.ts';
import { storageOf } from '../places.ts';
import { startMoto } from './moto.ts';

/** Where a demo keeps its archive and its table instead of folders. */
export interface DemoStore {
  /** Only this demo's objects lie below it. */
  readonly url: string;
  readonly storage: StorageSettings;
  stop(): Promise<unknown>;
}

const BUCKET = 'millrace-demo';

/**
 * @param asked `s3` for a stand-in on this machine, or the URL of a store, which is reached as in every command
 * @throws MillraceError usage where there is no stand-in; store_unreadable
 */
export async function openDemoStore(asked: string, io: Io): Promise<DemoStore> {
  if (asked !== 's3' && !isStoreUrl(asked))
    throw usageError(`--store ${asked}: must be s3, or a URL such as s3://bucket/prefix`);
  const name = `demo-${randomBytes(6).toString('hex')}`;
  if (asked !== 's3') {
    const storage = storageOf({}, io, [asked]) ?? storageSection.parse(undefined);
    const url = `${urlOf(asked)}/${name}`;
    await probe(url, storage, io.signal);
    return { url, storage, stop: () => Promise.resolve() };
  }
  const moto = await startMoto(io.signal);
  try {
    note(io, `store      moto, a stand-in of S3, at ${moto.url}`);
    const { ok, status } = await fetch(`${moto.url}/${BUCKET}`, { method: 'PUT', signal: io.signal });
    if (!ok) throw new MillraceError('store_unreadable', `moto did not make a bucket: ${status}`);
    const access = { accessKeyId: 'made-up', secretAccessKey: 'made-up' };
    const storage = storageSection.parse({
      s3: { endpoint: moto.url, region: 'us-east-1', forcePathStyle: true, ...access },
    });
    return { url: `s3://${BUCKET}/${name}`, storage, stop: moto.stop };
  } catch (error) {
    await moto.stop();
    throw error;
  }
}

/** A receiver would try again for as long as it runs; a demo says at once what is wrong. */
async function probe(url: string, storage: StorageSettings, signal: AbortSignal): Promise<void> {
  const store = await openStore(url, storage);
  try {
    await store.probe(signal);
  } catch (error) {
    throw new MillraceError('store_unreadable', messageOf(error), { cause: error });
  } finally {
    await store.close();
  }
}
