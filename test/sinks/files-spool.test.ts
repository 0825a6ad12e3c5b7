import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, expect, it, vi } from 'vitest';
import { AppendFile } from '../../src/lib/append-file.ts';
import type { FilesSink } from '../../src/sinks/files/sink.ts';
import { FINISH_STEPS, type FinishStep } from '../../src/sinks/files/archive.ts';
import { until } from '../support/until.ts';
import { checkChains, FaultyStore, idsIn, storeScene, storeSink } from './store-support.ts';
import { deliver, idsFrom, signal, tempFolder } from './support.ts';

afterEach(() => void vi.restoreAllMocks());

const KILLED = AbortSignal.abort();

async function sendTens(sink: FilesSink, first: number, last: number): Promise<void> {
  for (let from = first; from <= last; from += 10) await sink.send(deliver(from, 10), signal);
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
  const { sink, store } = await storeScene({ rotate: { bytes: 1024 }, partitionBy: ['type'] });
  const { gate } = slowDisk();
  const answers: string[] = [];
  for (let lane = 0; lane < 20; lane += 1) {
    for (const from of [1, 11]) {
      const [result] = await sink.send(deliver(lane * 100 + from, 10, { type: `lane.${lane}` }), signal);
      answers.push(result?.status ?? '');
    }
  }
  expect([answers[0], answers.at(-1)]).toEqual(['held', 'retry']);
  gate.resolve();
  await sink.flush();
  expect((await sink.send(deliver(9000, 1), signal))[0]?.status).toBe('held');
  await sink.close(signal);
  expect(await idsIn(store)).toHaveLength(answers.filter((one) => one === 'held').length * 10 + 1);
});

it('writes no third part of a folder while the first is synced', async () => {
  const { sink, store } = await storeScene({ rotate: { bytes: 1024 }, partitionBy: ['type'] });
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
  const { sink, store, context, start, fileIn } = await storeScene({ partitionBy: ['type'] });
  const old = deliver(1, 1, { type: 'old' });
  const young = deliver(2, 5, { type: 'young' });
  store.fault = (_, key) => (key.includes('type=old') ? 'busy' : null);
  await sink.send(old, signal);
  const part = fileIn('.part');
  await sink.send(young, signal);
  rmSync(part);
  await sink.flush();
  await sink.send(old, signal);
  context.clock.advance(40_000);
  context.clock.advance(40_000);
  await sink.close(KILLED);
  store.fault = () => null;
  const { sink: again } = await start();
  for (const batch of [old, young]) await again.send(batch, signal);
  await again.close(signal);
  expect(await idsIn(store)).toEqual(idsFrom(1, 6));
});

it('says of a flush which part could not be synced', async () => {
  const { sink, store } = await storeScene({ partitionBy: ['type'] });
  await sink.send(deliver(1, 1, { type: 'one' }), signal);
  await sink.send(deliver(2, 1, { type: 'two' }), signal);
  vi.spyOn(AppendFile.prototype, 'close').mockRejectedValueOnce(new Error('EIO: made up'));
  const { files, failed } = await sink.flush();
  expect([files.length, failed]).toEqual([1, [expect.stringMatching(/type=one\/.*\.part: EIO: made up/)]]);
  expect(await sink.flush()).toEqual({ files: [], failed: [] });
  await sink.close(signal);
  expect(await idsIn(store)).toEqual(['msg_2']);
});

it.each(['no_place', 'denied', 'archived', 'invalid'] as const)(
  'a put answered %s: the trouble says what to do, by a code that the reference names',
  async (fault) => {
    const { sink, store } = await storeScene();
    await sink.send(deliver(1, 1), signal);
    store.fault = () => fault;
    await sink.flush();
    const detail = expect.stringMatching(/fail \(.+\)$/) as string;
    expect(sink.troubles()[0]).toMatchObject({ code: `store_${fault}`, detail });
    expect(await readFile('docs/reference/errors.md', 'utf8')).toContain(`\`store_${fault}\``);
    await sink.close(KILLED);
  },
);

// As an erasure does that continues when the receiver starts, before the dispatcher has sent anything.
it.each(['flush', 'settle'] as const)(
  'a %s before what a kill has left is sent again: nothing is put twice',
  async (how) => {
    const { sink, store, start } = await storeScene();
    const batch = deliver(1, 3);
    await sink.send(batch, signal);
    await sink.close(KILLED);
    const { sink: again, context } = await start();
    if (how === 'flush') await again.flush();
    else await again.settle(() => Promise.resolve(true));
    await again.send(batch.slice(0, 1), signal);
    await again.send([...batch.slice(1), ...deliver(4, 1)], signal);
    // What is accepted from now on was never sent before.
    context.clock.advance(1000);
    await again.send(deliver(5, 1, { receivedAt: context.clock.now() }), signal);
    await again.close(signal);
    expect(await idsIn(store)).toEqual(idsFrom(1, 5));
  },
);

it.each([1, 9])(
  'an object whose answer was lost, and which an erasure has rewritten since, is not put again',
  async (level) => {
    const { path, sink, store, start, fileIn } = await storeScene();
    const batch = deliver(1, 3);
    store.fault = (verb) => (verb === 'putIfAbsent' ? 'lost' : null);
    await sink.send(batch, signal);
    await sink.flush();
    await sink.close(KILLED);
    const [object, made] = [fileIn('.gz', join(path, 'store')), readFileSync(fileIn('.gz'))];
    expect(readFileSync(object)).toEqual(made);
    writeFileSync(object, gzipSync(gunzipSync(made), { level }));
    expect(readFileSync(object)).not.toEqual(made);
    store.fault = () => null;
    const { sink: again } = await start();
    await again.send(batch, signal);
    await again.close(signal);
    expect(await idsIn(store)).toEqual(idsFrom(1, 3));
  },
);

/** What kill -9 leaves at a step: the disk and the store as they are then. */
async function killedAt(step: FinishStep, options: object) {
  const left = tempFolder();
  let killed = false;
  const onStep = (now: FinishStep): void => {
    if (now !== step || killed) return;
    killed = true;
    cpSync(scene.path, left, { recursive: true });
  };
  const scene = await storeScene(options, { onStep });
  await sendTens(scene.sink, 1, 41);
  await scene.sink.close(signal);
  expect(killed).toBe(true);
  return { store: await FaultyStore.in(join(left, 'store')), spool: join(left, 'spool') };
}

it.each(
  FINISH_STEPS.flatMap((step) => (['none', 'gzip'] as const).map((compress) => [step, compress] as const)),
)(
  'fault 5: killed when a file is %s, %s: what the journal sends again is there once, and all is listed',
  async (step, compress) => {
    const options = { rotate: { bytes: 4096 }, partitionBy: ['type'], compress };
    const { store, spool } = await killedAt(step, options);
    // Twice, because what is mended at a start must be so at the next one.
    for (const last of [false, true]) {
      const { sink } = storeSink(store, spool, options);
      await sink.open();
      await sendTens(sink, 1, 51);
      await sink.close(last ? signal : KILLED);
    }
    expect(await idsIn(store)).toEqual(idsFrom(1, 60).toSorted());
  },
);

it('a part that is not compressed is put without being copied, and the line has the hash of its bytes', async () => {
  const links: number[] = [];
  const onStep = (step: FinishStep): void => {
    if (step === 'written') links.push(statSync(scene.fileIn('.part')).nlink);
  };
  const scene = await storeScene({ compress: 'none' }, { onStep });
  const { path, sink, store } = scene;
  await sendTens(sink, 1, 21);
  await sink.close(signal);
  expect(links).toEqual([2]);
  const [file = ''] = await checkChains(store);
  const hash = createHash('sha256')
    .update(readFileSync(join(path, 'store', file)))
    .digest('hex');
  const segment = store.puts.find((key) => key.startsWith('_manifest')) ?? '';
  expect(readFileSync(join(path, 'store', segment), 'utf8')).toContain(`"sha256":"${hash}"`);
});

it('knows what lies in a spool that was full when it was killed, and puts it once', async () => {
  const { sink, store, start } = await storeScene({ rotate: { bytes: 1024 } });
  store.fault = (verb) => (verb === 'putIfAbsent' ? 'no_place' : null);
  const taken: number[] = [];
  for (let from = 1; from < 1000; from += 10) {
    const [result] = await sink.send(deliver(from, 10), signal);
    if (result?.status === 'retry') break;
    taken.push(from);
  }
  await sink.close(KILLED);
  const { sink: again } = await start();
  for (const from of taken)
    for (const { status } of await again.send(deliver(from, 10), signal)) expect(status).not.toBe('retry');
  expect((await again.send(deliver(1001, 1), signal))[0]).toMatchObject({ status: 'retry', sink: true });
  store.fault = () => null;
  await again.flush();
  await again.send(deliver(1001, 1), signal);
  await again.close(signal);
  const ids = await idsIn(store);
  expect([ids.length, new Set(ids).size]).toEqual([taken.length * 10 + 1, ids.length]);
});

it.each(['the rename of its part', 'the removal of the segment'])(
  'forgets the kept segment of a file also when %s fails at first',
  async (what) => {
    const onStep = (step: FinishStep): void => {
      if (step !== 'listed') return;
      inTheWay = what.includes('rename') ? scene.fileIn('.part').replace(/part$/, 'sent') : segment();
      rmSync(inTheWay, { force: true });
      mkdirSync(inTheWay);
    };
    let inTheWay = '';
    const scene = await storeScene({}, { onStep });
    const segment = (): string => scene.fileIn('0000000001.jsonl');
    await sendTens(scene.sink, 1, 1);
    await scene.sink.flush();
    expect(segment()).toMatch(/segment-/);
    rmSync(inTheWay, { recursive: true });
    if (!what.includes('rename')) writeFileSync(inTheWay, 'made up');
    scene.context.clock.advance(30_000);
    await until('the segment to go', () => !segment().endsWith('.jsonl'));
    await scene.sink.close(signal);
    expect(await idsIn(scene.store)).toHaveLength(10);
  },
);

it('keeps large events whole in the store, each once in the manifest', async () => {
  const { sink, store } = await storeScene();
  const { event } = deliver(1, 1)[0]!;
  store.fault = (verb, key) => (verb === 'putIfAbsent' && key.startsWith('_manifest') ? 'lost' : null);
  await expect(sink.keep(event)).rejects.toThrow('cut');
  store.fault = () => null;
  const claim = await sink.keep(event);
  expect(await sink.keep(event)).toEqual(claim);
  await sink.close(signal);
  expect(store.puts.filter((key) => key === claim.path)).toHaveLength(3);
});
