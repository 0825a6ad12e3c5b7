import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { answer } from '../../src/journal/perform.ts';
import { Segment } from '../../src/journal/segments/segment.ts';
import { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { lacksMount, mountTmpfs } from '../support/mounts.ts';
import { skipped } from '../support/requirements.ts';
import { ALL, allIn, append, batchOf, BOUNDS, eventsIn, named, NOW, openStore as open } from './support.ts';

const lack = lacksMount();

const seqsOf = (store: Store, after = 0, limits = ALL): readonly number[] =>
  eventsIn(store, after, limits).map(({ seq }) => seq);
/** Over all segments. */
const seqsIn = (store: Store): readonly number[] => allIn(store).map(({ seq }) => seq);

test.skipIf(lack !== null)(
  `a frame that the disk has no room for leaves nothing: seqs stay without holes, its ids count as new${skipped(lack)}`,
  async () => {
    const path = join(await temporaryFolder(), 'small');
    const unmount = mountTmpfs(path, '4m');
    let store = new Store({ path, ...BOUNDS });
    onTestFinished(() => {
      store.close();
      unmount();
    });
    append(store, 'a');
    const [segment = ''] = segmentsOf(path);
    const before = readFileSync(segment);
    const large = [
      ...named('b'),
      ...named('c', 'd', 'e').map((event) => ({ ...event, body: Buffer.alloc(2e6) })),
    ];
    expect(() => store.append(batchOf(large), NOW)).toThrow(MillraceError);
    expect([store.lastSeq, seqsOf(store)]).toEqual([1, [1]]);
    expect(readFileSync(segment)).toEqual(before);
    expect(store.append(batchOf(named('b', 'c')), NOW + 500).answers).toEqual([2, 3]);
    expect(store.account(0, 2 * NOW).counts).toMatchObject([{ kind: 'accepted', n: 3 }]);
    store.close();
    store = new Store({ path, ...BOUNDS });
    expect(seqsOf(store)).toEqual([1, 2, 3]);
  },
);

test('nothing is settled before every sink has it, and nothing at all while no sink is open', async () => {
  const store = open(await temporaryFolder());
  append(store, 'a', 'b', 'c');
  expect(store.cursors.settled()).toBe(0);
  // Long past their retention: they may be waited for by a sink that is not open yet.
  expect(store.maintain(NOW + 1e9)).toBe(false);
  expect(seqsOf(store)).toEqual([1, 2, 3]);
  store.cursors.open('late');
  append(store, 'd', 'e');
  expect(store.cursors.settled()).toBe(3);
  store.cursors.open('slow');
  store.cursors.move([['late', 5]]);
  expect(store.cursors.settled()).toBe(5);
  append(store, 'f');
  store.cursors.move([['late', 6]]);
  expect(store.cursors.settled()).toBe(5);
  store.cursors.leave('slow');
  expect(store.cursors.settled()).toBe(6);
});

test('only segments that are settled and past their retention are cleared away, as a whole', async () => {
  const path = await temporaryFolder();
  const store = open(path);
  store.cursors.open('a');
  const put = (...ages: number[]): void => {
    store.append(batchOf(ages.map((age) => makeEvent({ receivedAt: NOW + age }))), NOW);
    // As old as a segment may become before another is begun.
    store.maintain(NOW + 1);
    store.maintain(NOW + 63);
  };
  put(1000, 2000);
  put(500);
  put(0);
  expect(segmentsOf(path)).toHaveLength(4);
  store.cursors.move([['a', 3]]);
  store.maintain(NOW + 3000);
  expect(seqsIn(store)).toEqual([1, 2, 3, 4]);
  expect(store.maintain(NOW + 3001)).toBe(true);
  expect(seqsIn(store)).toEqual([3, 4]);
  while (store.maintain(NOW + 1e6));
  expect(seqsIn(store)).toEqual([4]);
  expect(store.status(NOW + 1e6)).toMatchObject({ firstSeq: 4, lastSeq: 4, events: 1 });
  store.close();
  expect(seqsIn(open(path))).toEqual([4]);
});

test('while a sink is down no ever more segments are begun, and all that is settled goes once it is back', async () => {
  const path = await temporaryFolder();
  const store = open(path);
  store.cursors.open('down');
  let now = NOW;
  for (let n = 0; n < 100; n += 1) {
    store.append(batchOf([makeEvent({ receivedAt: now })]), now);
    store.maintain((now += 100));
  }
  expect(segmentsOf(path)).toHaveLength(64);
  store.cursors.move([['down', 100]]);
  store.maintain((now += 100));
  while (store.maintain((now += 2000)));
  expect(segmentsOf(path)).toHaveLength(1);
});

test('a late move brings back no sink that has left or has another name, and moves the others', async () => {
  const path = await temporaryFolder();
  const store = open(path);
  for (const sink of ['left', 'old', 'here']) store.cursors.open(sink);
  append(store, 'a', 'b', 'c');
  store.cursors.leave('left');
  store.cursors.succeed('old', 'new');
  store.cursors.move([
    ['left', 3],
    ['old', 3],
    ['never', 3],
    ['here', 2],
  ]);
  expect(store.cursors.known()).toEqual([
    ['here', 2],
    ['new', 0],
  ]);
  store.close();
  const again = open(path);
  expect(again.cursors.known()).toEqual([
    ['here', 2],
    ['new', 0],
  ]);
});

test('a sink that came back after it had left gets what comes from then on', async () => {
  const store = open(await temporaryFolder());
  expect(store.cursors.open('a')).toBe(0);
  append(store, 'x', 'y');
  store.cursors.leave('a');
  expect(store.cursors.open('a')).toBe(2);
  expect(store.routes.read().left).toEqual([]);
  // It never came to be this time either: it has left, as before.
  store.cursors.release('a', true);
  expect(store.routes.read().left).toEqual(['a']);
  expect(store.cursors.known()).toEqual([]);
});

test('stored routes have the key that earlier versions read, and are read by it', async () => {
  const path = await temporaryFolder();
  const store = open(path);
  store.cursors.open('old');
  const { successors } = store.cursors.succeed('old', 'new');
  expect(successors).toEqual([{ upTo: null, from: 'old', to: 'new' }]);
  expect(JSON.parse(store.checkpoints.load('routes') ?? '')).toEqual({
    eras: [],
    heirs: successors,
    left: [],
    forgotten: false,
  });
  store.close();
  expect(open(path).routes.read().successors).toEqual(successors);
});

test('no sink continues for one that is not there, or under a name that has a cursor', async () => {
  const store = open(await temporaryFolder());
  store.cursors.open('a');
  store.cursors.open('b');
  expect(() => store.cursors.succeed('missing', 'c')).toThrow('c cannot continue for missing');
  expect(() => store.cursors.succeed('a', 'b')).toThrow('b cannot continue for a');
});

test('a page has what its bounds say, the first event whatever its size', async () => {
  const store = open(await temporaryFolder());
  store.append(
    batchOf([100, 100, 50, 300].map((bytes) => makeEvent({ body: Buffer.alloc(bytes, 65) }))),
    NOW,
  );
  expect(seqsOf(store, 0, { count: 9, bytes: 200 })).toEqual([1, 2]);
  expect(seqsOf(store, 0, { count: 9, bytes: 199 })).toEqual([1]);
  expect(seqsOf(store, 0, { count: 1, bytes: 1e9 })).toEqual([1]);
  expect(seqsOf(store, 3, { count: 9, bytes: 1 })).toEqual([4]);
  expect(seqsOf(store, 4)).toEqual([]);
});

test.each([
  ['another body', '{"marker":"second"}', 1],
  ['another user', 'user-second', 2],
  ['other headers', 'header-second', 3],
  ['another id', 'id-second', 4],
])('a record with %s is damaged: noted once, and delivered to no one', async (_what, text, flip) => {
  const path = await temporaryFolder();
  const first = open(path);
  const second = makeEvent({
    id: 'id-second',
    user: 'user-second',
    headers: { 'webhook-id': 'header-second' },
    body: Buffer.from('{"marker":"second"}'),
  });
  first.append(batchOf([...named('a'), second, ...named('c')]), NOW);
  first.close();
  const [segment = ''] = segmentsOf(path);
  const bytes = readFileSync(segment);
  const inside = bytes.indexOf(text) + text.length - 3;
  bytes[inside] = bytes[inside]! ^ flip;
  writeFileSync(segment, bytes);
  const store = open(path);
  const { damaged } = store.read(0, ALL, NOW);
  expect(damaged).toMatchObject([{ seq: 2, id: expect.stringContaining('id-') as string }]);
  expect(eventsIn(store).map(({ id, seq, handling }) => [id, seq, handling.only])).toEqual([
    ['a', 1, undefined],
    ['', 2, []],
    ['c', 3, undefined],
  ]);
  expect(store.read(1, ALL, NOW).damaged).toEqual([]);
  expect(store.status(NOW)).toMatchObject({ damaged: 1, quarantined: 1 });
});

function fail(code: string): Error {
  return Object.assign(new Error('made-up'), { code });
}

test('failures are distinguished: full, unreadable while reading, failed while writing', async () => {
  const store = open(await temporaryFolder());
  const codeOf = (op: string, error: Error): string | null => {
    const [part, method = null] = op.split('.');
    const target = method === null ? store : (store[part as 'eraser'] as unknown as Store);
    const work = vi.spyOn(target, (method ?? part) as 'status').mockImplementationOnce(() => {
      throw error;
    });
    const reply = answer(store, { op, args: [] });
    work.mockRestore();
    return reply.ok ? null : reply.code;
  };
  for (const op of ['append', 'read', 'status']) {
    expect(codeOf(op, fail('SQLITE_FULL'))).toBe('journal_full');
    expect(codeOf(op, new MillraceError('journal_full', 'made-up'))).toBe('journal_full');
  }
  expect(codeOf('read', fail('SQLITE_IOERR_READ'))).toBe('journal_unreadable');
  expect(codeOf('status', fail('SQLITE_IOERR_READ'))).toBe('journal_unreadable');
  // What an erasure only asks for, too.
  for (const op of ['eraser.counts', 'eraser.entries', 'eraser.firstStepAfterForgetting'])
    expect([op, codeOf(op, fail('SQLITE_IOERR_READ'))]).toEqual([op, 'journal_unreadable']);
  expect(codeOf('append', fail('SQLITE_IOERR_FSYNC'))).toBe('journal_failed');
  expect(codeOf('append', fail('SQLITE_CORRUPT'))).toBe('journal_failed');
  expect(codeOf('append', new Error('no code'))).toBe('journal_failed');
  expect(codeOf('maintain', fail('SQLITE_CORRUPT_INDEX'))).toBe('journal_unreadable');
  expect(codeOf('maintain', fail('SQLITE_IOERR_WRITE'))).toBe('journal_failed');
});

test('after a full disk nothing is tried for half a second, and then it is; at once where the clock was set back', async () => {
  for (const [waited, later] of [
    [499, 500],
    [null, -3_600_000],
  ] as const) {
    const store = open(await temporaryFolder());
    const full = vi.spyOn(Segment.prototype, 'append').mockImplementation(() => {
      throw new MillraceError('journal_full', 'made-up');
    });
    onTestFinished(() => full.mockRestore());
    expect(() => append(store, 'a')).toThrow('made-up');
    if (waited !== null)
      expect(() => store.append(batchOf(named('a')), NOW + waited)).toThrow('no space left');
    expect(full).toHaveBeenCalledTimes(1);
    full.mockRestore();
    expect(store.append(batchOf(named('a')), NOW + later).answers).toEqual([1]);
  }
});
