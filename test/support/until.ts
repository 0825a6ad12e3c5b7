import { setTimeout as wait } from 'node:timers/promises';

/** Far more than anything takes on a busy machine: a test waits for what happens, never for a time. */
const DEADLINE = 180_000;

/**
 * Asks again and again until the answer is neither false, null nor undefined, and returns it.
 * @param what names what was waited for in the error
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  deadline: number = DEADLINE,
): Promise<NonNullable<Exclude<T, false>>> {
  const end = performance.now() + deadline;
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== null && answer !== undefined) {
      return answer as NonNullable<Exclude<T, false>>;
    }
    if (performance.now() > end) throw new Error(`waited ${deadline} ms in vain for: ${what}`);
    await wait(20);
  }
}

/** The value, or an error that names what did not come. */
export async function within<T>(what: string, promise: Promise<T>, deadline: number = DEADLINE): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`waited ${deadline} ms in vain for: ${what}`)),
    deadline,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
