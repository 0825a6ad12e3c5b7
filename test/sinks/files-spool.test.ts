import { readdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { AppendFile } from '../../src/lib/append-file.ts';
import { checkChains, FaultyStore, recordsIn, storeSink } from './store-support.ts';
import { deliver, signal, tempFolder } from './support.ts';

afterEach(() => void vi.restoreAllMocks());

async function scene(options: object) {
  const path = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  const spool = join(path, 'spool');
  return { store, spool, start: () => storeSink(store, spool, options), ...storeSink(store, spool, options) };
}

/** Parts that are synced from now on wait until it is let go. */
function slowDisk() {
  const gate = Promise.withResolvers<void>();
  const { close } = AppendFile.prototype;
  const closing = vi.spyOn(AppendFile.prototype, 'close').mockImplementation(async function (
    this: AppendFile,
  ) {
    await gate.promise;
    await close.call(this);
  });
  return { gate, closing };
}

it('counts what is being synced to what it may keep', async () => {
  const { sink, store } = await scene({ rotate: { bytes: 1024 }, partitionBy: ['type'] });
  await sink.open();
  const { gate } = slowDisk();
  const answers: string[] = [];
  for (let lane = 0; lane < 20; lane += 1) {
    for (const from of [1, 11]) {
      const [result] = await sink.send(deliver(lane * 100 + from, 10, { type: `lane.${lane}` }), signal);
      answers.push(result?.status ?? '');
    }
  }
  expect(answers[0]).toBe('held');
  expect(answers.at(-1)).toBe('retry');
  gate.resolve();
  await sink.flush();
  expect((await sink.send(deliver(9000, 1), signal))[0]?.status).toBe('held');
  await sink.close(signal);
  await checkChains(store);
  expect(await recordsIn(store)).toHaveLength(answers.filter((one) => one === 'held').length * 10 + 1);
});

it('writes no third part of a folder while the first is synced', async () => {
  const { sink, store } = await scene({ rotate: { bytes: 1024 }, partitionBy: ['type'] });
  await sink.open();
  const { gate, closing } = slowDisk();
  await sink.send(deliver(1, 10, { type: 'one' }), signal);
  await sink.send(deliver(11, 10, { type: 'one' }), signal);
  let isTaken = false;
  const third = sink
    .send(deliver(21, 10, { type: 'one' }), signal)
    .then((results) => ((isTaken = true), results));
  // What takes longer than a send that waits for nothing.
  await Promise.all(['two', 'three', 'four'].map((type) => sink.send(deliver(100, 10, { type }), signal)));
  expect([isTaken, closing.mock.calls.length]).toEqual([false, 1]);
  gate.resolve();
  expect((await third)[0]?.status).toBe('held');
  await sink.close(signal);
  await checkChains(store);
});

it('knows what was confirmed beside a part that was lost, until that one’s events are in the store', async () => {
  const { sink, store, spool, context, start } = await scene({ partitionBy: ['type'] });
  await sink.open();
  const old = deliver(1, 1, { type: 'old' });
  const young = deliver(2, 5, { type: 'young' });
  store.fault = (_, key) => (key.includes('type=old') ? 'busy' : null);
  await sink.send(old, signal);
  const part = readdirSync(spool, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('.part'),
  );
  await sink.send(young, signal);
  rmSync(join(spool, part ?? ''));
  await sink.flush();
  await sink.send(old, signal);
  context.clock.advance(40_000);
  context.clock.advance(40_000);
  await sink.close(AbortSignal.abort());
  store.fault = () => null;
  const again = start().sink;
  await again.open();
  for (const batch of [old, young]) await again.send(batch, signal);
  await again.close(signal);
  await checkChains(store);
  expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(
    Array.from({ length: 6 }, (_, at) => `msg_${at + 1}`),
  );
});

it('says of a flush which part could not be synced', async () => {
  const { sink, store } = await scene({ partitionBy: ['type'] });
  await sink.open();
  await sink.send(deliver(1, 1, { type: 'one' }), signal);
  await sink.send(deliver(2, 1, { type: 'two' }), signal);
  vi.spyOn(AppendFile.prototype, 'close').mockRejectedValueOnce(new Error('EIO: made up'));
  const { files, failed } = await sink.flush();
  expect([files.length, failed]).toEqual([1, [expect.stringMatching(/type=one\/.*\.part: EIO: made up/)]]);
  expect(await sink.flush()).toEqual({ files: [], failed: [] });
  await sink.close(signal);
  expect((await recordsIn(store)).map(({ id }) => id)).toEqual(['msg_2']);
});

it.each(['no_place', 'denied', 'archived', 'invalid'] as const)(
  'a put answered %s: the trouble says what to do, by a code that the reference names',
  async (fault) => {
    const { sink, store } = await scene({});
    await sink.open();
    await sink.send(deliver(1, 1), signal);
    store.fault = () => fault;
    await sink.flush();
    const [trouble] = sink.troubles();
    expect(trouble).toMatchObject({
      code: `store_${fault}`,
      detail: expect.stringMatching(/fail \(.+\)$/) as string,
    });
    const reference = await readFile('config/README.md', 'utf8');
    expect(reference).toMatch(new RegExp(`What is wrong with the store is in .*\`store_${fault}\``));
    await sink.close(AbortSignal.abort());
  },
);
