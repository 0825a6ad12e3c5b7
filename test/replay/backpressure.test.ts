import { expect, onTestFinished, test } from 'vitest';
import type { CursorStatus } from '../../src/core/journal.ts';
import { Backpressure } from '../../src/replay/backpressure.ts';
import { until } from '../support/until.ts';

function cursor(sink: string, backlog: number): CursorStatus {
  return { sink, seq: 0, backlog, backlogBytes: 0, backlogAge: 0 };
}

/** Asks a receiver whose cursors the test sets; null is a receiver that does not answer. */
function watched(cursors: readonly CursorStatus[]) {
  const state: { cursors: readonly CursorStatus[] | null; asked: number; said: (string | null)[] } = {
    cursors,
    asked: 0,
    said: [],
  };
  const backpressure = new Backpressure({
    ask: () => {
      state.asked += 1;
      return state.cursors === null ? Promise.reject(new Error('not there')) : Promise.resolve(state.cursors);
    },
    sinks: ['hubs'],
    atMost: 10,
    onChange: (reason) => state.said.push(reason),
  });
  const over = new AbortController();
  const watching = backpressure.watch(over.signal);
  onTestFinished(async () => {
    over.abort();
    await watching;
  });
  return { backpressure, state, signal: over.signal };
}

test('waits while live events wait for a sink of its own, and continues when they are through', async () => {
  const { backpressure, state, signal } = watched([cursor('hubs', 11), cursor('archive', 0)]);
  await until('a look', () => state.said.length === 1);
  let isFree = false;
  const turn = backpressure.turn(signal)?.then(() => (isFree = true));
  expect(turn).toBeDefined();
  expect({ isFree, said: state.said }).toEqual({ isFree: false, said: ['11 live events wait for hubs'] });
  state.cursors = [cursor('hubs', 10)];
  await turn;
  expect(backpressure.turn(signal)).toBeUndefined();
  expect(state.said.at(-1)).toBeNull();
});

test.each([
  ['another sink is behind', [cursor('archive', 1000)]],
  ['no receiver runs', []],
])('%s: does not wait', async (_, cursors) => {
  const { backpressure, state, signal } = watched(cursors);
  await until('a look', () => state.asked > 0);
  expect(backpressure.turn(signal)).toBeUndefined();
});

test('a receiver that goes away while it was behind holds nothing back', async () => {
  const { backpressure, state, signal } = watched([cursor('hubs', 11)]);
  await until('a look', () => state.said.length === 1);
  const turn = backpressure.turn(signal);
  state.cursors = null;
  await turn;
  expect(backpressure.turn(signal)).toBeUndefined();
});

test('an end while it waits ends the waiting', async () => {
  const { backpressure, state } = watched([cursor('hubs', 11)]);
  await until('a look', () => state.said.length === 1);
  const stop = new AbortController();
  const turn = backpressure.turn(stop.signal);
  stop.abort(new Error('made-up end'));
  await expect(turn).rejects.toThrow('made-up end');
});
