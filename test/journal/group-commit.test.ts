import { expect, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { AppendResult } from '../../src/core/ingest.ts';
import { GroupCommit, type Waiting } from '../../src/journal/group-commit.ts';
import { makeEvent } from '../support/events.ts';
import { until } from '../support/until.ts';

/** Commits that end when the test says so. */
function build() {
  const batches: { batch: readonly Waiting[]; end: () => void }[] = [];
  let seq = 0;
  const commits = new GroupCommit(async (batch) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    batches.push({ batch, end: resolve });
    await promise;
    return () => {
      for (const { resolve: answer } of batch) answer({ status: 'accepted', seq: (seq += 1) });
    };
  });
  const add = (bytes = 1): Promise<AppendResult> =>
    commits.add({
      event: makeEvent({ body: Buffer.alloc(bytes) }),
      handling: undefined,
      invalid: null,
      dedupKey: undefined,
    });
  return { batches, commits, add };
}

const isOpen = async (promise: Promise<unknown>): Promise<boolean> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return (await Promise.race([promise.then(() => 'settled'), Promise.resolve('open')])) === 'open';
};

test('nothing is answered before its commit has ended; events of one turn share a commit', async () => {
  const { batches, add } = build();
  const [one, two] = [add(), add()];
  expect(await isOpen(one)).toBe(true);
  expect(batches.map(({ batch }) => batch.length)).toEqual([2]);
  const late = add();
  expect(await isOpen(late)).toBe(true);
  // One commit at a time.
  expect(batches).toHaveLength(1);
  batches[0]?.end();
  expect(await Promise.all([one, two])).toEqual([
    { status: 'accepted', seq: 1 },
    { status: 'accepted', seq: 2 },
  ]);
  await until('the next commit', () => batches.length === 2);
  expect(await isOpen(late)).toBe(true);
  batches[1]?.end();
  expect(await late).toEqual({ status: 'accepted', seq: 3 });
});

test('the next commit begins before the last is answered, with half of all that are on their way', async () => {
  const { batches, add } = build();
  const first = add();
  await until('a commit', () => batches.length === 1);
  const more = Array.from({ length: 32 }, () => add());
  const begun = first.then(() => batches.length);
  batches[0]?.end();
  expect(await begun).toBe(2);
  expect(batches[1]?.batch).toHaveLength(17);
  batches[1]?.end();
  await until('the other half', () => batches.length === 3);
  expect(batches[2]?.batch).toHaveLength(15);
  batches[2]?.end();
  expect((await Promise.all(more)).at(-1)).toEqual({ status: 'accepted', seq: 33 });
});

test('a commit takes 1,024 events and 16 MiB at most, in the order they came, and one larger event alone', async () => {
  const { batches, add } = build();
  const MIB = 2 ** 20;
  const few = [9 * MIB, 7 * MIB, 1, 17 * MIB, 5].map((bytes) => add(bytes));
  for (let n = 0; n < 4; n += 1) {
    await until(`commit ${n + 1}`, () => batches.length === n + 1);
    batches[n]?.end();
  }
  await Promise.all(few);
  expect(batches.map(({ batch }) => batch.map(({ event }) => event.body.length))).toEqual([
    [9 * MIB, 7 * MIB],
    [1],
    [17 * MIB],
    [5],
  ]);
  const many = Array.from({ length: 5000 }, () => add());
  for (let n = 4; n < 10; n += 1) {
    await until('another commit', () => batches.length > n);
    expect(batches[n]?.batch.length).toBeLessThanOrEqual(1024);
    batches[n]?.end();
  }
  expect(batches[5]?.batch).toHaveLength(1024);
  expect((await Promise.all(many)).map((result) => 'seq' in result && result.seq)).toEqual(
    Array.from({ length: 5000 }, (_, n) => n + 6),
  );
});

test('settled waits for what was added before, in the running commit and behind it', async () => {
  const { batches, commits, add } = build();
  await commits.settled();
  void add();
  await until('a commit', () => batches.length === 1);
  const first = commits.settled();
  expect(await isOpen(first)).toBe(true);
  void add();
  const second = commits.settled();
  batches[0]?.end();
  await first;
  expect(await isOpen(second)).toBe(true);
  await until('the next commit', () => batches.length === 2);
  batches[1]?.end();
  await second;
});

test('rejectAll refuses what waits, not what is being committed', async () => {
  const { batches, commits, add } = build();
  const running = add();
  await until('a commit', () => batches.length === 1);
  const waiting = add();
  commits.rejectAll(new MillraceError('journal_failed', 'made-up'));
  await expect(waiting).rejects.toMatchObject({ code: 'journal_failed' });
  batches[0]?.end();
  expect(await running).toMatchObject({ status: 'accepted' });
  // What comes later is committed as before.
  const later = add();
  await until('another commit', () => batches.length === 2);
  batches[1]?.end();
  expect(await later).toMatchObject({ status: 'accepted' });
});
