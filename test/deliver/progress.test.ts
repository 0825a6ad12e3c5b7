import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import type { Item } from '../../src/deliver/item.ts';
import { makeEvent } from '../support/events.ts';
import { windowOf } from './running.ts';

const at = (seq: number, user: string, bytes = 10): JournalEvent => ({
  ...makeEvent({ id: `e${seq}`, user, body: Buffer.alloc(bytes) }),
  seq,
  handling: {},
});

test('the cursor never passes an event that is open, over many thousands that settle in any order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 5000, max: 12_000 }), fc.integer({ min: 1, max: 400 }), (count, ahead) => {
      const { window, pending } = windowOf();
      const open = new Map<number, Item>();
      const settle = (seq: number): void => {
        window.settle(open.get(seq) as Item);
        open.delete(seq);
      };
      for (let seq = 1; seq <= count; seq += 1) {
        window.admit(at(seq, `u${seq}`, 0));
        for (const item of pending.take() as Item[]) open.set(item.seq, item);
        // The oldest stays open for a while, and the newest settles first.
        const [oldest = 0] = open.keys();
        if (seq > ahead) settle(seq % 2 === 0 ? seq : oldest);
        const [least = seq + 1] = open.keys();
        if (window.cursor !== least - 1) throw new Error(`${seq}: ${window.cursor}, but ${least} is open`);
      }
      for (const seq of open.keys()) settle(seq);
      expect([window.cursor, window.destinations.count]).toEqual([count, 0]);
    }),
    { numRuns: 5 },
  );
});

test('an event for no target of the sink is settled at once, one for two targets when both are', () => {
  const { window, pending } = windowOf({
    targetsOf: ({ seq }) =>
      seq === 1
        ? [{ sink: 'other', destination: null }]
        : [
            { sink: 'a', destination: 'x' },
            { sink: 'a', destination: 'y' },
          ],
  });
  window.admit(at(1, 'u'));
  expect([window.cursor, window.position, window.destinations.count]).toEqual([1, 1, 0]);
  window.admit(at(2, 'u'));
  const items = pending.take() as Item[];
  expect(items).toHaveLength(2);
  window.settle(items[0] as Item);
  expect([window.cursor, window.destinations.count]).toEqual([1, 1]);
  window.settle(items[1] as Item);
  expect([window.cursor, window.destinations.count]).toEqual([2, 0]);
});

test('it asks for no more than its bounds have room for, and for nothing when the bytes are used up', () => {
  const { window, pending } = windowOf();
  expect(window.destinations.room).toEqual({ count: 100, bytes: 1000 });
  window.admit(at(1, 'u', 400));
  expect(window.destinations.room).toEqual({ count: 99, bytes: 600 });
  window.admit(at(2, 'u', 600));
  expect(window.destinations.room).toBe(null);
  const [first] = pending.take() as [Item];
  window.settle(first);
  expect(window.destinations.room).toEqual({ count: 99, bytes: 400 });
  for (let seq = 3; seq <= 78; seq += 1) window.admit(at(seq, 'u', 0));
  // A quarter of 100 is free no more: too little is not worth a read.
  expect(window.destinations.room).toBe(null);
});

test('what is forgotten is not sent and holds nothing back; newer events of the same user are sent', () => {
  const { window, pending } = windowOf();
  for (const [seq, user] of [
    [1, 'gone'],
    [2, 'stays'],
    [3, 'gone'],
    [4, 'gone'],
  ] as const)
    window.admit(at(seq, user));
  window.forget({ upTo: 3, owned: ({ user }) => user === 'gone' });
  const taken = pending.take() as Item[];
  expect(taken).toHaveLength(4);
  const left = window.unforgotten(taken);
  expect(left.map(({ event }) => event.seq)).toEqual([4, 2]);
  expect([window.destinations.count, window.cursor]).toEqual([2, 1]);
  for (const item of left) window.settle(item);
  expect([window.destinations.count, window.cursor]).toEqual([0, 4]);
});

test('a user whose events go out is not in again for those beside them that are forgotten', () => {
  const { window, pending } = windowOf();
  for (const seq of [1, 2]) window.admit(at(seq, 'u'));
  window.forget({ upTo: 1, owned: ({ user }) => user === 'u' });
  const out = window.unforgotten(pending.take() as Item[]);
  expect(out.map(({ seq }) => seq)).toEqual([2]);
  window.admit(at(3, 'u'));
  expect(pending.take()).toBeNull();
  pending.release([], out);
  expect(pending.take()?.map(({ seq }) => seq)).toEqual([2, 3]);
});

test('two erasures at a time both hold', () => {
  const { window, pending } = windowOf();
  for (const [seq, user] of [
    [1, 'one'],
    [2, 'two'],
    [3, 'three'],
  ] as const)
    window.admit(at(seq, user));
  for (const gone of ['one', 'two']) window.forget({ upTo: 3, owned: ({ user }) => user === gone });
  expect(window.unforgotten(pending.take() as Item[]).map(({ event }) => event.user)).toEqual(['three']);
});
