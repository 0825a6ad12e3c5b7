import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';

test('a timer is never early, also when it is set late in a turn of the loop', async () => {
  const ms = 20.7;
  for (let n = 0; n < 5; n += 1) {
    await new Promise((resolve) => void setImmediate(resolve));
    const begun = systemClock.monotonic();
    while (systemClock.monotonic() < begun + 10);
    const set = systemClock.monotonic();
    await new Promise<void>((resolve) => {
      const keepsAlive = setInterval(() => undefined, 1000);
      systemClock.after(ms, () => {
        clearInterval(keepsAlive);
        resolve();
      });
    });
    expect(systemClock.monotonic() - set).toBeGreaterThanOrEqual(ms);
  }
});
