import { expect, test } from 'vitest';
import { startParts, type Part } from '../../src/lib/parts.ts';

/** Parts that write down what happens to them; `faults` says which fail, and when. */
function written(faults: Readonly<Record<string, 'start' | 'stop'>> = {}) {
  const lines: string[] = [];
  const part = (name: string): Part<string> => ({
    name,
    start: (system) => {
      if (faults[name] === 'start') throw new Error(`${name} cannot start`);
      lines.push(`${name} starts on ${system}`);
      return (signal) => {
        lines.push(`${name} stops${signal.aborted ? ' at once' : ''}`);
        return faults[name] === 'stop' ? Promise.reject(new Error(`${name} cannot stop`)) : Promise.resolve();
      };
    },
  });
  const unclean: string[] = [];
  const parts = ['store', 'sinks', 'endpoint'].map(part);
  const started = startParts(parts, 'disk', (error, name) => unclean.push(`${name}: ${String(error)}`));
  return { lines, unclean, started };
}

test('parts start in their order and stop in the reverse, once', async () => {
  const { lines, started } = written();
  const stop = await started;
  expect(lines).toEqual(['store starts on disk', 'sinks starts on disk', 'endpoint starts on disk']);
  lines.length = 0;
  const { signal } = new AbortController();
  await stop(signal);
  await stop(signal);
  expect(lines).toEqual(['endpoint stops', 'sinks stops', 'store stops']);
});

test('when a part cannot start, those before it are stopped at once, and the error is its own', async () => {
  const { lines, unclean, started } = written({ endpoint: 'start' });
  await expect(started).rejects.toThrow('endpoint cannot start');
  expect(lines.slice(2)).toEqual(['sinks stops at once', 'store stops at once']);
  expect(unclean).toEqual([]);
});

test('a part that cannot be stopped then does not hide why', async () => {
  const { unclean, started } = written({ endpoint: 'start', sinks: 'stop' });
  await expect(started).rejects.toThrow('endpoint cannot start');
  expect(unclean).toEqual(['endpoint: Error: sinks cannot stop']);
});

test('a part that has nothing to stop is passed over', async () => {
  const stop = await startParts([{ name: 'status', start: () => undefined }], null, () => undefined);
  await expect(stop(AbortSignal.abort())).resolves.toBeUndefined();
});
