import { systemClock, type Clock } from '../core/clock.ts';

/**
 * A clock that runs `speed` times as fast as another from now on: at 1000, an hour takes 3.6 seconds.
 * @param earliest its wall begins there when the other's is not so far yet
 */
export function speedClock(speed: number, base: Clock = systemClock, earliest = 0): Clock {
  const wall = Math.max(base.now(), earliest);
  const start = base.monotonic();
  const elapsed = (): number => (base.monotonic() - start) * speed;
  return {
    now: () => wall + elapsed(),
    monotonic: () => start + elapsed(),
    after: (ms, callback) => longAfter(base, ms / speed, callback),
  };
}

/** Timers of Node overflow after 24.8 days. */
const LONGEST = 2 ** 31 - 1;

function longAfter(clock: Clock, ms: number, callback: () => void): () => void {
  if (ms <= LONGEST) return clock.after(ms, callback);
  let cancel = clock.after(LONGEST, () => {
    cancel = longAfter(clock, ms - LONGEST, callback);
  });
  return () => cancel();
}
