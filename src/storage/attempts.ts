import { setTimeout as wait } from 'node:timers/promises';
import { StorageError, type GetOptions } from '../core/storage.ts';
import { NEVER, onAbort } from '../lib/abort.ts';
import { formatDuration } from '../lib/units.ts';
import type { Driver } from './driver.ts';

export interface Patience {
  /** Milliseconds that one request may take, and that a body may stand still. */
  readonly timeout: number;
  /** Attempts for each request; the SDKs make one each. */
  readonly tries: number;
}

/** Milliseconds before the second attempt, at most; each further pause is twice as long, up to the longest. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 20_000;

/** Makes a request, again while its failure is transient. @param faultOf the error to throw for a failure */
export async function attempt<T>(
  { timeout, tries }: Patience,
  faultOf: (error: unknown) => StorageError,
  signal: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  for (let failed = 1; ; failed += 1) {
    const stop = new AbortController();
    let error: unknown;
    try {
      return await inTime(request(stop.signal), timeout, signal);
    } catch (thrown) {
      error = meaningOf(thrown, faultOf, signal);
    } finally {
      stop.abort();
    }
    await pauseAfter(failed, error, tries, signal);
  }
}

/** Breaks of one read after which it fails, each with the attempts of a request. */
const MOST_BREAKS = 20;

/**
 * The bytes of one version of an object. When the body breaks off, ends early or stands still, another request reads the rest.
 * @param key with the store's prefix
 */
export async function* readObject(
  driver: Driver,
  { timeout, tries }: Patience,
  key: string,
  { offset: first = 0, version: wanted, signal = NEVER }: GetOptions,
): AsyncGenerator<Buffer> {
  let offset = first;
  let version = wanted ?? null;
  let failed = 0;
  for (let breaks = 1; ; breaks += 1) {
    const stop = new AbortController();
    let error: unknown;
    try {
      const reading = await inTime(driver.read(key, { offset, version }, stop.signal), timeout, signal);
      // Not all stores heed the condition of a read.
      if (version !== null && reading.version !== version) throw new StorageError('changed', 'was replaced');
      version = reading.version;
      const chunks = reading.body[Symbol.asyncIterator]();
      for (;;) {
        const { done, value } = await inTime(chunks.next(), timeout, signal);
        if (done === true) break;
        offset += value.byteLength;
        failed = 0;
        yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      }
      if (offset >= reading.bytes) return;
      throw new StorageError('unreachable', 'the answer ended early');
    } catch (thrown) {
      error = meaningOf(thrown, (cause) => driver.faultOf(cause), signal);
    } finally {
      stop.abort();
    }
    failed += 1;
    await pauseAfter(breaks > MOST_BREAKS ? tries : failed, error, tries, signal);
  }
}

/** The result of a step of a request. Rejects when it is late or the signal aborts: the SDKs do not heed it in every step. */
async function inTime<T>(step: Promise<T>, timeout: number, signal: AbortSignal): Promise<T> {
  const end = Promise.withResolvers<never>();
  const late = (): void =>
    end.reject(new StorageError('unreachable', `no answer in ${formatDuration(timeout)}`));
  const timer = setTimeout(late, timeout);
  const forget = onAbort(signal, () => end.reject(signal.reason));
  try {
    return await Promise.race([step, end.promise]);
  } finally {
    clearTimeout(timer);
    forget();
  }
}

function meaningOf(error: unknown, faultOf: (error: unknown) => StorageError, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return error instanceof StorageError ? error : faultOf(error);
}

/**
 * Waits before the next attempt: any time up to the limit, so that clients that failed together do not retry together.
 * @param failed attempts in a row that have failed
 * @throws the error when no attempt follows, or the store asks for a longer pause than a caller should wait
 */
async function pauseAfter(failed: number, error: unknown, tries: number, signal: AbortSignal): Promise<void> {
  if (!isTransient(error) || failed >= tries || signal.aborted) throw error;
  const asked = (error as StorageError).delayMs ?? 0;
  if (asked > LONGEST_PAUSE) throw error;
  const most = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failed - 1));
  await wait(Math.max(asked, Math.random() * most), undefined, { signal });
}

/** True when the same call can succeed later without a change of settings. */
export function isTransient(error: unknown): boolean {
  return error instanceof StorageError && (error.fault === 'busy' || error.fault === 'unreachable');
}
