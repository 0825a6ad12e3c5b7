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
    onAbort(signal, resolve);
  });
}

/** Calls back once the signal aborts, at once when it has. @returns what makes it forget that */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  signal.addEventListener('abort', callback, { once: true });
  if (signal.aborted) callback();
  return () => signal.removeEventListener('abort', callback);
}

/** The result of the work, or `fallback` as soon as the signal aborts; the work then continues unheeded. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, fallback: T): Promise<T> {
  const aborted = Promise.withResolvers<T>();
  const forget = onAbort(signal, () => aborted.resolve(fallback));
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    forget();
  }
}

/**
 * The result of the work; the work continues unheeded when this throws.
 * @throws `late` a moment after `ms`, for the work's own deadline tells more; an AbortError when the signal aborts
 */
export async function within<T>(work: Promise<T>, ms: number, signal: AbortSignal, late: Error): Promise<T> {
  const end = Promise.withResolvers<never>();
  const timer = setTimeout(() => end.reject(late), ms + LAST_MOMENT);
  const forget = onAbort(signal, () => end.reject(new DOMException('aborted', 'AbortError')));
  try {
    return await Promise.race([work, end.promise]);
  } finally {
    clearTimeout(timer);
    forget();
  }
}

/** The results of both works. When one fails the other is told to stop, and has ended once this throws. */
export async function inParallel<A, B>(
  signal: AbortSignal,
  first: (stop: AbortSignal) => Promise<A>,
  second: (stop: AbortSignal) => Promise<B>,
): Promise<[A, B]> {
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const works = [first(stop), second(stop)] as const;
  try {
    return await Promise.all(works);
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(works);
    throw error;
  }
}
