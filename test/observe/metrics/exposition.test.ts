import perf from 'node:perf_hooks';
import { expect, test, vi } from 'vitest';
import { createExposition } from '../../../src/observe/metrics/exposition.ts';

test('however many receivers a process has had, its event loop is watched once', () => {
  // Each watch wakes the process a hundred times a second, and nothing ends it.
  const watches = vi.spyOn(perf, 'monitorEventLoopDelay');
  try {
    for (let receiver = 0; receiver < 3; receiver += 1) createExposition();
    expect(watches.mock.calls.length).toBeLessThanOrEqual(1);
  } finally {
    watches.mockRestore();
  }
});
