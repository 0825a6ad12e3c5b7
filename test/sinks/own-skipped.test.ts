import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { Sink } from '../../src/core/sink.ts';
import { OwnSink } from '../../src/sinks/own-sink.ts';
import { LIMITS, silentLog } from '../deliver/support.ts';

/** What is seen of what a user's own module says it skipped. */
function seenOf(skipped: (() => unknown) | undefined): unknown {
  const context = { name: 'own', log: silentLog, clock: systemClock };
  const own = new OwnSink('/own.mjs', context, () => undefined);
  own.take({ limits: LIMITS, skipped } as unknown as Sink, LIMITS);
  return own.skipped();
}

function broken(): never {
  throw new Error('made up');
}

test('what a module says it skipped is shown when it is names and counts, and few of them', () => {
  expect(seenOf(() => new Map([['made.up', 2]]))).toEqual([['made.up', 2]]);
  const many = Array.from({ length: 200 }, (_, n) => [`made.up.${n}`, 1]);
  for (const odd of [undefined, () => null, () => 7, () => [['a']], () => [['a', -1]], () => many, broken])
    expect(seenOf(odd)).toEqual([]);
});
