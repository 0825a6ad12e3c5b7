import { expect, onTestFinished, test } from 'vitest';
import type { CursorStatus } from '../../src/core/journal.ts';
import { Courtesy } from '../../src/replay/courtesy.ts';
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
  const courtesy = new Courtesy({
    ask: () => {
      state.asked += 1;
      return state.cursors === null ? Promise.reject(new Error('not there')) : Promise.resolve(state.cursors);
    },
    sinks: ['hubs'],
    atMost: 10,
    onChange: (reason) => state.said.push(reason),
  });
  const over = new AbortController();
  const watching = courtesy.watch(over.signal);
  onTestFinished(async () => {
    over.abort();
    await watching;
  });
  return { courtesy, state, signal: over.signal };
}

test('waits while live events wait for a sink of its own, and goes on when they are through', async () => {
  const { courtesy, state, signal } = watched([cursor('hubs', 11), cursor('archive', 0)]);
  await until('a look', () => state.said.length === 1);
  let isFree = false;
  const turn = courtesy.turn(signal)?.then(() => (isFree = true));
  expect(turn).toBeDefined();
  expect({ isFree, said: state.said }).toEqual({ isFree: false, said: ['11 live events wait for hubs'] });
  state.cursors = [cursor('hubs', 10)];
  await turn;
  expect(courtesy.turn(signal)).toBeUndefined();
  expect(state.said.at(-1)).toBeNull();
});

test.each([
  ['another sink is behind', [cursor('archive', 1000)]],
  ['nobody runs', []],
])('%s: does not wait', async (_, cursors) => {
  const { courtesy, state, signal } = watched(cursors);
  await until('a look', () => state.asked > 0);
  expect(courtesy.turn(signal)).toBeUndefined();
});

test('a receiver that goes away while it was behind holds nothing back', async () => {
  const { courtesy, state, signal } = watched([cursor('hubs', 11)]);
  await until('a look', () => state.said.length === 1);
  const turn = courtesy.turn(signal);
  state.cursors = null;
  await turn;
  expect(courtesy.turn(signal)).toBeUndefined();
});

test('an end while it waits ends the waiting', async () => {
  const { courtesy, state } = watched([cursor('hubs', 11)]);
  await until('a look', () => state.said.length === 1);
  const stop = new AbortController();
  const turn = courtesy.turn(stop.signal);
  stop.abort(new Error('made-up end'));
  await expect(turn).rejects.toThrow('made-up end');
});
