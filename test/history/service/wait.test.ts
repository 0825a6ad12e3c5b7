import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import type { Clock } from '../../../src/core/clock.ts';
import { wait } from '../../../src/history/service/wait.ts';

test('a wait leaves no listener on its signal, whether its time comes or the signal', async () => {
  const stop = new AbortController();
  const { promise: called, resolve: call } = Promise.withResolvers<() => void>();
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (_, callback) => {
      call(callback);
      return () => undefined;
    },
  };
  const waited = wait(clock, 1, stop.signal);
  (await called)();
  await waited;
  expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  const aborted = wait(clock, 1, stop.signal);
  stop.abort(new Error('made up'));
  await expect(aborted).rejects.toThrow('made up');
  expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
});
