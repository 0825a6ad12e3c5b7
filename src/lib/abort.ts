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
