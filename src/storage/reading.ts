import { setTimeout as wait } from 'node:timers/promises';
import { type GetOptions, isTransient, StorageError } from '../core/storage.ts';
import { backoff, Deadline, heeding, type Patience } from './attempts.ts';
import type { Driver } from './driver.ts';

/** Breaks of one read after which it fails, each with the attempts of a request. */
const BREAKS = 20;

/**
 * The bytes of an object, one version from the first byte to the last. When the body breaks off, ends early or stands
 * still, the rest is asked for, at most so often.
 * @param key with the store's prefix
 */
export async function* readObject(
  driver: Driver,
  patience: Patience,
  key: string,
  { offset = 0, version: wanted, signal }: GetOptions,
): AsyncGenerator<Buffer> {
  let at = offset;
  let version = wanted ?? null;
  let failed = 0;
  for (let breaks = 0; ;) {
    const deadline = new Deadline(patience.timeout, signal);
    try {
      const from = { offset: at, version };
      const reading = await heeding(deadline.signal, driver.read(key, from, deadline.signal));
      // Not all stores heed the condition of a read.
      if (version !== null && reading.version !== version) throw new StorageError('changed', 'was replaced');
      version = reading.version;
      const chunks = reading.body[Symbol.asyncIterator]();
      for (;;) {
        const { done, value } = await heeding(deadline.signal, chunks.next());
        if (done === true) break;
        const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
        at += chunk.length;
        failed = 0;
        // Whoever reads may take any time.
        deadline.pause();
        yield chunk;
        deadline.start();
      }
      if (at >= reading.bytes) return;
      throw new StorageError('unreachable', 'the answer ended early');
    } catch (thrown) {
      const error = deadline.meaning(thrown, (cause) => driver.faultOf(cause));
      failed += 1;
      breaks += 1;
      if (!isTransient(error) || failed >= patience.tries || breaks > BREAKS) throw error;
      const pause = backoff(failed, error as StorageError);
      if (pause === null) throw error;
      await wait(pause, undefined, signal === undefined ? {} : { signal });
    } finally {
      deadline.end();
    }
  }
}
