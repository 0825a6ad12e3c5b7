import { setTimeout as wait } from 'node:timers/promises';
import { isTransient, StorageError, type GetOptions } from '../core/storage.ts';
import { onAbort } from '../lib/abort.ts';
import { formatDuration } from '../lib/units.ts';
import type { Driver } from './driver.ts';

export interface Patience {
  /** Milliseconds that one request may take, and that a body may stand still. */
  readonly timeout: number;
  /** Attempts for each request; the SDKs make one each. */
  readonly tries: number;
}

/** Milliseconds before the second attempt, at most; it doubles from there. */
const FIRST = 100;
const LONGEST = 20_000;

/**
 * How long to wait after `failed` attempts in a row: any time up to the limit, so that many who failed together do not come
 * back together. Null when the store asks for more time than a caller should be kept waiting.
 */
export function backoff(failed: number, error: StorageError): number | null {
  const asked = error.delayMs ?? 0;
  if (asked > LONGEST) return null;
  return Math.max(asked, Math.random() * Math.min(LONGEST, FIRST * 2 ** (failed - 1)));
}

/** The signal of one request: aborted from outside, or when the request has waited for too long. */
class Deadline {
  readonly #own = new AbortController();
  readonly #forget: () => void;
  readonly #timeout: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeout: number, outer: AbortSignal | undefined) {
    this.#timeout = timeout;
    this.#forget = outer === undefined ? () => {} : onAbort(outer, () => this.#own.abort(outer.reason));
    this.start();
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  start(): void {
    const late = (): void =>
      this.#own.abort(new StorageError('unreachable', `no answer in ${formatDuration(this.#timeout)}`));
    this.#timer = setTimeout(late, this.#timeout);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Ends the request, if it has not ended. */
  end(): void {
    this.pause();
    this.#forget();
    this.#own.abort();
  }

  /** What an error of the request means: where the request was aborted, the reason for that. */
  meaning(error: unknown, faultOf: (error: unknown) => StorageError): unknown {
    if (this.signal.aborted) return this.signal.reason;
    return error instanceof StorageError ? error : faultOf(error);
  }
}

/**
 * Makes a request, again while its failure may pass.
 * @param faultOf what a failure means; what it gives is thrown
 */
export async function attempt<T>(
  { timeout, tries }: Patience,
  faultOf: (error: unknown) => StorageError,
  outer: AbortSignal | undefined,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  for (let failed = 1; ; failed += 1) {
    const deadline = new Deadline(timeout, outer);
    let error: unknown;
    try {
      return await heeding(deadline.signal, request(deadline.signal));
    } catch (thrown) {
      error = deadline.meaning(thrown, faultOf);
    } finally {
      deadline.end();
    }
    if (!isTransient(error) || failed >= tries || outer?.aborted === true) throw error;
    const pause = backoff(failed, error as StorageError);
    if (pause === null) throw error;
    await wait(pause, undefined, outer === undefined ? {} : { signal: outer });
  }
}

/** The SDKs do not all look at the signal at every step: credentials are fetched without it. */
async function heeding<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const forget = onAbort(signal, () => aborted.reject(signal.reason));
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    forget();
  }
}

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
