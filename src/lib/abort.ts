/** For callers without a signal. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Milliseconds after a deadline in which work may notice it and end in order. */
const GRACE = 250;

/** Waits for the promise, at most until `GRACE` after the signal aborts. @throws what the promise does */
export async function orAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const late = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  const forget = onAbort(signal, () => {
    timer = setTimeout(late.resolve, GRACE);
  });
  try {
    await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
    forget();
  }
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    onAbort(signal, resolve);
  });
}

/** Calls back once the signal aborts, at once if it has. @returns a function that cancels that */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  signal.addEventListener('abort', callback, { once: true });
  if (signal.aborted) callback();
  return () => signal.removeEventListener('abort', callback);
}

/** The result of the work, or `fallback` as soon as the signal aborts; the work then continues, and its result is dropped. */
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
 * The result of the work. When this throws, the work continues, and its result is dropped.
 * @throws `late` at `GRACE` after `ms`, because the work's own deadline explains more; an AbortError when the signal aborts
 */
export async function within<T>(work: Promise<T>, ms: number, signal: AbortSignal, late: Error): Promise<T> {
  const end = Promise.withResolvers<never>();
  const timer = setTimeout(() => end.reject(late), ms + GRACE);
  const forget = onAbort(signal, () => end.reject(new DOMException('aborted', 'AbortError')));
  try {
    return await Promise.race([work, end.promise]);
  } finally {
    clearTimeout(timer);
    forget();
  }
}

/** The results of both works. When one fails, the other's signal aborts, and it has ended once this throws. */
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
