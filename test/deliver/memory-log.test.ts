import { expect, test } from 'vitest';
import { MemoryLog } from '../../src/deliver/memory-log.ts';
import { Tracker } from '../../src/replay/tracker.ts';
import { makeEvent } from '../support/events.ts';

const BODY = makeEvent().body.length;

function logOf(bounds: { maxEvents?: number; maxBytes?: number } = {}) {
  const settled: number[] = [];
  const log = new MemoryLog({
    maxEvents: bounds.maxEvents ?? 100,
    maxBytes: bounds.maxBytes ?? 1e6,
    onRefused: () => Promise.resolve(),
    onSettled: (seq) => settled.push(seq),
  });
  return { log, settled, signal: new AbortController().signal };
}

const isOpen = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise.then(() => 'settled'), Promise.resolve('open')])) === 'open';

test('takes no more than its bounds, and more when the slowest sink has moved', async () => {
  for (const bounds of [{ maxEvents: 3 }, { maxBytes: BODY * 3 }]) {
    const { log, signal } = logOf(bounds);
    await log.openCursor('fast');
    await log.openCursor('slow');
    for (let n = 0; n < 3; n += 1) {
      await log.room(signal);
      log.append(makeEvent(), {});
    }
    const room = log.room(signal);
    log.moveCursor('fast', 3);
    expect(await isOpen(room)).toBe(true);
    log.moveCursor('slow', 1);
    await room;
    expect(log.settledSeq).toBe(1);
    expect((await log.read(0, { count: 10, bytes: 1e6 })).map(({ seq }) => seq)).toEqual([2, 3]);
    expect((await log.read(2, { count: 10, bytes: 1 })).map(({ seq }) => seq)).toEqual([3]);
  }
});

test('is idle when every sink has all of it, and an end ends the waiting', async () => {
  const { log, settled, signal } = logOf();
  await log.idle(signal);
  await log.openCursor('one');
  log.append(makeEvent(), {});
  log.append(makeEvent(), {});
  const idle = log.idle(signal);
  log.moveCursor('one', 1);
  expect(await isOpen(idle)).toBe(true);
  const stop = new AbortController();
  const ended = log.idle(stop.signal);
  stop.abort(new Error('made-up end'));
  await expect(ended).rejects.toThrow('made-up end');
  log.moveCursor('one', 2);
  await idle;
  expect(settled).toEqual([1, 2]);
});

const tally = (read: number) => ({ read, erased: 0, problems: 0, bytes: 0 });

test('a place counts once everything before it is settled, and its counts with it', () => {
  const tracker = new Tracker({ unit: 0, at: 0 }, undefined);
  const targets = [{ sink: 'one', destination: null }];
  const handed = { type: 'a', targets, where: 'file:1' };
  tracker.handed(1, { unit: 0, at: 3 }, tally(3), handed);
  tracker.handed(2, { unit: 0, at: 7 }, tally(7), { ...handed, type: 'b', where: 'file:7' });
  tracker.stepped(2, { unit: 0, at: 10 }, { ...tally(10), problems: 1, bytes: 99 });
  tracker.stepped(2, { unit: 1, at: 0 }, tally(0));
  expect({ position: tracker.position, counts: tracker.counts }).toMatchObject({
    position: { unit: 0, at: 0 },
    counts: { read: 0, selected: 0 },
  });
  tracker.settle(1);
  expect(tracker.position).toEqual({ unit: 0, at: 3 });
  expect(tracker.counts).toMatchObject({ read: 3, selected: 1, types: { a: 1 }, problems: 0 });
  expect(tracker.whereOf(2)).toBe('file:7');
  tracker.refused(2, { sink: 'one', destination: null });
  tracker.settle(2);
  expect(tracker.position).toEqual({ unit: 1, at: 0 });
  expect(tracker.counts).toEqual({
    read: 10,
    erased: 0,
    problems: 1,
    bytes: 99,
    selected: 2,
    nowhere: 0,
    refused: 1,
    types: { a: 1, b: 1 },
    targets: { one: 1 },
  });
  // As --resume continues.
  const again = new Tracker(tracker.position, tracker.counts);
  again.handed(1, { unit: 1, at: 1 }, tally(1), handed);
  again.settle(1);
  expect(again.counts).toMatchObject({ read: 11, selected: 3, problems: 1, types: { a: 2, b: 1 } });
});
