import { setTimeout as wait } from 'node:timers/promises';

/** Waits for the promise, but hardly longer than until the signal aborts: an orderly end gets one more moment. */
export async function orAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const late = (async () => {
    await untilAborted(signal);
    await wait(LAST_MOMENT, undefined, { signal: ended.signal }).catch(() => undefined);
  })();
  try {
    await Promise.race([promise, late]);
  } finally {
    ended.abort();
  }
}

/** Milliseconds past the deadline for whoever listens to the signal to notice. */
const LAST_MOMENT = 250;

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The result of the work, or `fallback` as soon as the signal aborts; the work then goes on unheeded. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, fallback: T): Promise<T> {
  const aborted = Promise.withResolvers<T>();
  const stop = (): void => aborted.resolve(fallback);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/**
 * The result of the work; the work goes on unheeded when this throws.
 * @throws `late` a moment after `ms`, for the work's own deadline tells more; an AbortError when the signal aborts
 */
export async function within<T>(work: Promise<T>, ms: number, signal: AbortSignal, late: Error): Promise<T> {
  const end = Promise.withResolvers<never>();
  const timer = setTimeout(() => end.reject(late), ms + LAST_MOMENT);
  const stop = (): void => end.reject(new DOMException('aborted', 'AbortError'));
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([work, end.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
