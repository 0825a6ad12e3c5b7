import { expect, test } from 'vitest';
import { Steady } from '../../src/lib/steady.ts';

const SHOWN = 10_000;

/** What is shown at each of these moments; a `+` begins an error there, a `-` ends it. */
function shownAt(...moments: readonly (readonly [at: number, change?: string])[]): (string | null)[] {
  let at = 0;
  const error = new Steady<string>({ monotonic: () => at }, SHOWN);
  return moments.map(([moment, change = '']) => {
    at = moment;
    if (change.startsWith('+')) error.begin(change);
    if (change === '-') error.end();
    return error.shown;
  });
}

test('an error is over at once, and one that comes back within ten seconds is shown for ten more after each end', () => {
  expect(shownAt([0], [1000, '+a'], [2000, '-'], [3000])).toEqual([null, '+a', null, null]);
  expect(
    shownAt(
      [0, '+a'],
      [1000, '-'],
      [2000, '+b'],
      [3000, '-'],
      [12_999],
      [13_000],
      [14_000, '+c'],
      [15_000, '-'],
    ),
  ).toEqual(['+a', null, '+b', '+b', '+b', null, '+c', null]);
  expect(shownAt([0, '+a'], [1000, '-'], [11_000, '+b'], [12_000, '-'])).toEqual(['+a', null, '+b', null]);
});

test('what is so now is not what is shown', () => {
  let at = 0;
  const error = new Steady<string>({ monotonic: () => at }, SHOWN);
  error.end();
  expect([error.now, error.shown]).toEqual([null, null]);
  for (const next of ['a', 'b']) {
    error.begin(next);
    expect([error.now, error.shown]).toEqual([next, next]);
    at += 1000;
    error.end();
  }
  expect([error.now, error.shown]).toEqual([null, 'b']);
});
