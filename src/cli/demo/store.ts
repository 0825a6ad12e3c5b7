import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { urlOf } from '../../archive/places.ts';
import { messageOf, MillraceError } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import { storageSection, type StorageSettings } from '../../storage/fields.ts';
import { note, usageError, type Io } from '../io.ts';
import { storageOf, withStore } from '../places.ts';
import { startChild, unlessInterrupted } from './child.ts';

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
  await withStore(url, storage, async (store) => {
    try {
      await store.probe(signal);
    } catch (error) {
      throw new MillraceError('store_unreadable', messageOf(error), { cause: error });
    }
  });
}

const WAYS = [['moto_server'], ['python3', '-m', 'moto.server']] as const;
/** It finds a free port itself, so that no other program can be faster. */
const ADDRESS = ['-H', '127.0.0.1', '-p', '0'];
const RUNNING = /Running on (http:\/\/127\.0\.0\.1:\d+)/;
/** Milliseconds: Python reads thousands of files first. */
const PATIENCE = 60_000;

/**
 * Starts moto, a stand-in of S3 that keeps its objects in memory, where it is installed.
 * @returns `http://127.0.0.1:port`, and what ends it
 * @throws MillraceError usage when it is not
 */
async function startMoto(
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly stop: () => Promise<unknown> }> {
  let reason = '';
  for (const [program, ...args] of WAYS) {
    const running = Promise.withResolvers<string | null>();
    const child = startChild(program, [...args, ...ADDRESS], {
      onLine: (line) => {
        const url = RUNNING.exec(line)?.[1];
        if (url !== undefined) running.resolve(url);
      },
    });
    const over = child.ended.then(() => null);
    const starting = Promise.race([running.promise, over, wait(PATIENCE, null, { ref: false })]);
    const url = await unlessInterrupted(child, signal, starting);
    const stop = (): Promise<unknown> => child.end('SIGKILL');
    if (url !== null) return { url, stop };
    await stop();
    reason = child.said();
  }
  throw usageError(
    `--store s3 needs moto, a stand-in of S3: pip install 'moto[server]'; or name a store: --store s3://bucket/prefix` +
      ` (${reason})`,
  );
}
