import { expect, test } from 'vitest';
import { Parts, type Started } from '../../src/lib/parts.ts';

/** Parts that write down what happens to them; `faults` says which fail, and when. */
function written(faults: Readonly<Record<string, 'start' | 'stop'>> = {}) {
  const lines: string[] = [];
  const unclean: string[] = [];
  const parts = new Parts((error, name) => unclean.push(`${name}: ${String(error)}`));
  const start = (name: string): Started<string> => {
    if (faults[name] === 'start') throw new Error(`${name} cannot start`);
    lines.push(`${name} starts`);
    const stop = (signal: AbortSignal): Promise<void> => {
      lines.push(`${name} stops${signal.aborted ? ' at once' : ''}`);
      return faults[name] === 'stop' ? Promise.reject(new Error(`${name} cannot stop`)) : Promise.resolve();
    };
    return { made: `the ${name}`, stop };
  };
  const all = async (): Promise<string[]> => {
    const made: string[] = [];
    for (const name of ['store', 'sinks', 'endpoint']) made.push(await parts.start(name, () => start(name)));
    return made;
  };
  return { lines, unclean, parts, started: all() };
}

test('parts start in their order and stop in the reverse, once', async () => {
  const { lines, parts, started } = written();
  expect(await started).toEqual(['the store', 'the sinks', 'the endpoint']);
  expect(lines).toEqual(['store starts', 'sinks starts', 'endpoint starts']);
  lines.length = 0;
  const { signal } = new AbortController();
  await parts.stop(signal);
  await parts.stop(signal);
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
  const parts = new Parts(() => undefined);
  expect(await parts.start('status', () => ({ made: 'it' }))).toBe('it');
  await expect(parts.stop(AbortSignal.abort())).resolves.toBeUndefined();
});
