import { here } from './world.ts';

interface WaitOptions {
  readonly signal?: AbortSignal;
}

/** As in node:timers/promises, on simulated time. */
export function setTimeout<T>(ms: number, value?: T, { signal }: WaitOptions = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      cancel();
      reject(
        Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' }),
      );
    };
    const cancel = here().scheduler.after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve(value as T);
    });
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

export function setImmediate<T>(value?: T): Promise<T> {
  return here().scheduler.ask(() => value as T);
}
