import type { Clock } from '../../core/clock.ts';

/**
 * Waits on the clock. The clock's timers let a process end; a command that waits before its next attempt must not, so
 * a timer of our own holds it open meanwhile.
 * @throws the signal's reason when it aborts
 */
export async function wait(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  if (ms <= 0) return;
  const done = Promise.withResolvers<void>();
  const cancel = clock.after(ms, done.resolve);
  const hold = setInterval(() => undefined, 2 ** 30);
  signal?.addEventListener('abort', () => done.resolve(), { once: true });
  try {
    await done.promise;
  } finally {
    clearInterval(hold);
    cancel();
  }
  signal?.throwIfAborted();
}
