import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { Tail } from '../../src/journal/tail.ts';
import { makeEvent } from '../support/events.ts';

const ALL = { count: 1000, bytes: 1e9 };

/** Counts 1,000 bytes in a tail. */
function at(seq: number): JournalEvent {
  return { ...makeEvent({ body: Buffer.alloc(488) }), seq, handling: {} };
}

function inTail(tail: Tail, after: number): number[] | null {
  return tail.read(after, ALL)?.map(({ seq }) => seq) ?? null;
}

test('the tail has the newest events without a hole, within its bytes; what it has not is asked of the disk', () => {
  const tail = new Tail(3000);
  expect(inTail(tail, 0)).toBe(null);
  for (const seq of [5, 6, 7]) tail.push(at(seq));
  expect(inTail(tail, 3)).toBe(null);
  expect(inTail(tail, 4)).toEqual([5, 6, 7]);
  expect(inTail(tail, 6)).toEqual([7]);
  expect(inTail(tail, 7)).toBe(null);
  tail.push(at(8));
  expect(inTail(tail, 4)).toBe(null);
  expect(inTail(tail, 5)).toEqual([6, 7, 8]);
  tail.drop(7);
  expect(inTail(tail, 6)).toBe(null);
  expect(inTail(tail, 7)).toEqual([8]);
  tail.push(at(9));
  tail.push(at(10));
  expect(inTail(tail, 7)).toEqual([8, 9, 10]);
  // A hole: what is in front of it is of no use.
  tail.push(at(12));
  expect(inTail(tail, 7)).toBe(null);
  expect(inTail(tail, 11)).toEqual([12]);
  for (let seq = 13; seq <= 2000; seq += 1) {
    tail.push(at(seq));
    if (seq % 3 === 0) tail.drop(seq - 1);
  }
  expect(inTail(tail, 1997)).toEqual([1998, 1999, 2000]);
});

test('while no one has read nearly as far it keeps nothing, and again once somebody comes near', () => {
  const tail = new Tail(1e6);
  tail.push(at(20_000));
  expect(inTail(tail, 3)).toBe(null);
  expect(inTail(tail, 9999)).toBe(null);
  expect(inTail(tail, 3)).toBe(null);
  tail.push(at(20_001));
  expect(inTail(tail, 10_002)).toBe(null);
  tail.push(at(20_002));
  expect(inTail(tail, 20_000)).toBe(null);
  expect(inTail(tail, 20_001)).toEqual([20_002]);
});
