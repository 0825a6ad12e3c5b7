import type { Clock } from '../../core/clock.ts';
import { NEVER, onAbort } from '../../lib/abort.ts';

/** Waits on the clock, and keeps the process alive, which the clock's timers do not. @throws the signal's reason when it aborts */
export async function wait(clock: Clock, ms: number, signal: AbortSignal = NEVER): Promise<void> {
  signal.throwIfAborted();
  if (ms <= 0) return;
  const done = Promise.withResolvers<void>();
  const cancel = clock.after(ms, done.resolve);
  const alive = setInterval(() => undefined, 2 ** 30);
  const forget = onAbort(signal, done.resolve);
  try {
    await done.promise;
  } finally {
    forget();
    clearInterval(alive);
    cancel();
  }
  signal.throwIfAborted();
}
