import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { Pending, type Item } from '../../src/deliver/pending.ts';
import { makeEvent } from '../support/events.ts';

const LIMITS = {
  batchCount: 2,
  batchBytes: 1e6,
  eventBytes: 1e6,
  inFlight: 4,
  order: 'user',
  batchBy: 'mixed',
} as const;

const event = (seq: number, user: string | null): JournalEvent => ({
  ...makeEvent({ id: `e${seq}`, user }),
  seq,
  handling: {},
});

const seqsOf = (items: readonly Item[] | null): number[] => (items ?? []).map(({ event: { seq } }) => seq);

test('a user that is out waits, and what is to be sent again comes first', () => {
  const pending = new Pending(LIMITS);
  for (const seq of [1, 2, 3]) pending.push(event(seq, 'u'), null);
  const batch = pending.take() ?? [];
  expect(seqsOf(batch)).toEqual([1, 2]);
  pending.push(event(4, 'u'), null);
  expect(pending.take()).toBe(null);
  pending.release(batch.slice(0, 1), batch.slice(1));
  expect(seqsOf(pending.take())).toEqual([2, 3]);
});

test('a user released in two parts, as by an erasure in between, loses nothing and keeps its order', () => {
  const pending = new Pending(LIMITS);
  for (const seq of [1, 2, 3]) pending.push(event(seq, 'u'), null);
  const [gone, left] = pending.take() ?? [];
  pending.release(gone === undefined ? [] : [gone]);
  pending.push(event(4, 'u'), null);
  pending.release([], left === undefined ? [] : [left]);
  expect(seqsOf(pending.take())).toEqual([2, 3]);
});

test('what has no order to keep goes out at once, and comes back to the front', () => {
  const pending = new Pending({ ...LIMITS, order: 'none' });
  for (const seq of [1, 2, 3, 4]) pending.push(event(seq, 'u'), null);
  const first = pending.take() ?? [];
  pending.release([], first);
  expect(seqsOf(pending.take())).toEqual([1, 2]);
  expect(seqsOf(pending.take())).toEqual([3, 4]);
  expect(pending.ready).toBe(false);
});
