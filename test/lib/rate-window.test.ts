import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RateWindow } from '../../src/lib/rate-window.ts';

test('no second has more than the rate, however it is asked', () => {
  const rates = fc.oneof(
    fc.constantFrom(0.5, 1, 2.5, 20, 300, 12_345),
    fc.double({ min: 0.1, max: 50, noNaN: true }),
  );
  const pauses = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3000, noNaN: true })), {
    minLength: 1,
  });
  fc.assert(
    fc.property(rates, pauses, (rate, between) => {
      const window = new RateWindow(rate);
      const times: number[] = [];
      let now = 0;
      for (const pause of between) {
        now += pause;
        for (let n = 0; n < 30; n += 1) {
          now += Math.max(0, window.wait(now));
          window.take(now);
          times.push(now);
        }
      }
      // Rates below one a second are of so many seconds.
      const length = Math.max(1000, 1000 / rate);
      for (const [n, from] of times.entries()) {
        const within = times.slice(n).filter((at) => at < from + length).length;
        expect(within).toBeLessThanOrEqual(Math.ceil((rate * length) / 1000));
      }
    }),
    { numRuns: 60 },
  );
});

test('who always asks has nearly all of the rate', () => {
  for (const rate of [0.5, 7, 300, 20_000]) {
    const window = new RateWindow(rate);
    let now = 0;
    const count = Math.ceil(rate * 10);
    for (let n = 0; n <= count; n += 1) {
      now += Math.max(0, window.wait(now));
      window.take(now);
    }
    expect(now).toBeLessThanOrEqual((count / rate) * 1000 * 1.02);
  }
});
