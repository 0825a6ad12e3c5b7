import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import type { Item } from '../../src/deliver/item.ts';
import { QueueInOrder, QueuePerUser, type SendQueue } from '../../src/deliver/send-queue.ts';
import { makeEvent } from '../support/events.ts';

const PLACE = { destination: null };
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
  const pending = new QueuePerUser(LIMITS);
  for (const seq of [1, 2, 3]) pending.push(event(seq, 'u'), PLACE);
  const batch = pending.take() ?? [];
  expect(seqsOf(batch)).toEqual([1, 2]);
  pending.push(event(4, 'u'), PLACE);
  expect(pending.take()).toBe(null);
  pending.release(batch.slice(0, 1), batch.slice(1));
  expect(seqsOf(pending.take())).toEqual([2, 3]);
});

test('a user released in two parts, as by an erasure in between, loses nothing and keeps its order', () => {
  const pending = new QueuePerUser(LIMITS);
  for (const seq of [1, 2, 3]) pending.push(event(seq, 'u'), PLACE);
  const [gone, left] = pending.take() ?? [];
  pending.release(gone === undefined ? [] : [gone]);
  pending.push(event(4, 'u'), PLACE);
  pending.release([], left === undefined ? [] : [left]);
  expect(seqsOf(pending.take())).toEqual([2, 3]);
});

test('what has no order to keep goes out at once, and comes back to the front', () => {
  const pending = new QueuePerUser({ ...LIMITS, order: 'none' });
  for (const seq of [1, 2, 3, 4]) pending.push(event(seq, 'u'), PLACE);
  const first = pending.take() ?? [];
  pending.release([], first);
  expect(seqsOf(pending.take())).toEqual([1, 2]);
  expect(seqsOf(pending.take())).toEqual([3, 4]);
  expect(pending.ready).toBe(false);
});

test('one batch at a time goes out in the order of the journal, and what a retry holds back is its user only', () => {
  const pending = new QueueInOrder({ ...LIMITS, inFlight: 1 });
  for (const [index, user] of ['u', 'v', 'u', null, 'u', 'v'].entries())
    pending.push(event(index, user), PLACE);
  const [first, second] = pending.take() ?? [];
  if (first === undefined || second === undefined) throw new Error('there is no first batch');
  pending.postpone([first]);
  pending.release([second]);
  pending.push(event(6, 'u'), PLACE);
  expect(seqsOf(pending.take())).toEqual([3, 5]);
  expect([pending.ready, pending.take()]).toEqual([false, null]);
  pending.push(event(7, 'v'), PLACE);
  pending.release([], [first]);
  expect(seqsOf(pending.take())).toEqual([0, 2]);
  expect(seqsOf(pending.take())).toEqual([4, 6]);
  expect(seqsOf(pending.take())).toEqual([7]);
});

test('a batch in order has no more bytes than the sink takes, and one event that is larger alone', () => {
  const pending = new QueueInOrder({ ...LIMITS, inFlight: 1, batchCount: 10, batchBytes: 100 });
  for (const [seq, bytes] of [60, 40, 1, 200, 5].entries())
    pending.push({ ...event(seq, 'u'), body: Buffer.alloc(bytes) }, PLACE);
  expect([1, 2, 3, 4].map(() => seqsOf(pending.take()))).toEqual([[0, 1], [2], [3], [4]]);
});

const kinds: readonly (readonly [string, (order: 'user' | 'none') => SendQueue])[] = [
  ['in order', (order) => new QueueInOrder({ ...LIMITS, inFlight: 1, batchCount: 5, order })],
  ['user by user', (order) => new QueuePerUser({ ...LIMITS, inFlight: 1, batchCount: 5, order })],
];

test.each(kinds)(
  '%s: whatever is retried and when, each event goes out once and behind those of its user',
  (_, make) => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ push: fc.constantFrom('u', 'v', 'w', null) }),
        // What becomes of each of a batch: a digit.
        fc.record({ batch: fc.array(fc.nat({ max: 3 }), { minLength: 5, maxLength: 5 }) }),
        fc.constant('come back' as const),
      ),
      { maxLength: 80 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const pending = make('user');
        const sent: Item[] = [];
        let pushed = 0;
        let late: Item[][] = [];
        const deliver = (fates: readonly number[]): void => {
          const batch = pending.take() ?? [];
          // As a sink has to: nothing of a user is delivered behind what is not.
          const failed = new Set<string>();
          const again: Item[] = [];
          for (const [index, item] of batch.entries()) {
            const fails = fates[index] === 0 || failed.has(item.key ?? '');
            if (fails && item.key !== null) failed.add(item.key);
            (fails ? again : sent).push(item);
          }
          const groups = [...Map.groupBy(again, (item) => item.key ?? item).values()];
          pending.postpone(again);
          pending.release(batch.filter((item) => !again.includes(item) && !failed.has(item.key ?? '')));
          late.push(...groups);
        };
        const comeBack = (): void => {
          for (const items of late) pending.release([], items);
          late = [];
        };
        for (const step of all) {
          if (step === 'come back') comeBack();
          else if ('push' in step) pending.push(event((pushed += 1), step.push), PLACE);
          else deliver(step.batch);
        }
        comeBack();
        while (pending.ready) deliver([1, 1, 1, 1, 1]);
        const seqs = seqsOf(sent);
        expect(seqs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: pushed }, (__, n) => n + 1));
        for (const user of ['u', 'v', 'w']) {
          const own = seqsOf(sent.filter((item) => item.event.user === user));
          expect(own).toEqual(own.toSorted((a, b) => a - b));
        }
      }),
      { numRuns: 300 },
    );
  },
);
