import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, expect, it, vi } from 'vitest';
import type { SendResult } from '../../src/core/sink.ts';
import { AppendFile } from '../../src/lib/append-file.ts';
import type { FilesSink } from '../../src/sinks/files/sink.ts';
import { bytesOf, checkChains, idsIn, recordsIn, storeScene, storeSink } from './store-support.ts';
import { deliver, idsFrom, signal } from './support.ts';

afterEach(() => void vi.restoreAllMocks());

const KILLED = AbortSignal.abort();
const HELD = { status: 'held' };

async function stateOf(result: SendResult | undefined): Promise<string> {
  if (result?.status !== 'held') return result?.status ?? 'nothing';
  const turn = new Promise<string>((resolve) => setImmediate(() => resolve('held')));
  const said = result.until.then(
    () => 'confirmed',
    () => 'lost',
  );
  return await Promise.race([said, turn]);
}

/** Sends tens, one after another. */
async function sendTens(sink: FilesSink, from: number, tens: number): Promise<SendResult[]> {
  const results: SendResult[] = [];
  for (let n = 0; n < tens; n += 1) results.push(...(await sink.send(deliver(from + n * 10, 10), signal)));
  return results;
}

const files = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^lock|\.lock$|^newest-segment$/.test(entry.name))
    .map(({ name }) => name.replace(/^[^.]*/, '').replace(/^$/, '(none)'));

/** The next call of a method of all file handles fails so. */
async function failOnce(method: 'datasync' | 'write', message: string): Promise<void> {
  await using handle = await open(import.meta.filename);
  const prototype = Object.getPrototypeOf(handle) as typeof handle;
  vi.spyOn(prototype, method).mockRejectedValueOnce(new Error(message));
}

it('confirms what is in its object and in the manifest, and not before', async () => {
  const { sink, store, context } = await storeScene();
  const [result] = await sink.send(deliver(1, 1), signal);
  expect([await stateOf(result), store.puts]).toEqual(['held', []]);
  const gate = Promise.withResolvers<void>();
  store.fault = (_, key) => (key.startsWith('_manifest') ? 'unreachable' : null);
  store.gate = gate.promise;
  context.clock.advance(300_000);
  expect(await stateOf(result)).toBe('held');
  gate.resolve();
  await expect.poll(() => sink.troubles().map(({ code }) => code)).toEqual(['store_unreachable']);
  expect([await stateOf(result), store.puts.length]).toEqual(['held', 1]);
  store.fault = () => null;
  await sink.flush();
  expect([await stateOf(result), sink.troubles()]).toEqual(['confirmed', []]);
  await sink.close(signal);
  expect(await idsIn(store)).toEqual(['msg_1']);
});

it.each(['lost', 'unreachable', 'busy', 'denied', 'no_place'] as const)(
  'fault 46: each put answered %s for a while: nothing is lost, written twice or overwritten',
  async (fault) => {
    const { sink, store } = await storeScene({ rotate: { bytes: 1024 }, partitionBy: ['type'] });
    const failed = new Set<string>();
    store.fault = (verb, key) => {
      if (verb !== 'putIfAbsent' || failed.has(key)) return null;
      failed.add(key);
      return fault;
    };
    const results = await sendTens(sink, 1, 5);
    await expect.poll(() => sink.troubles().length).toBe(1);
    expect(sink.troubles()).toMatchObject([{ code: `store_${fault === 'lost' ? 'unreachable' : fault}` }]);
    for (let round = 0; round < 20; round += 1) await sink.flush();
    for (const result of results) expect(await stateOf(result)).toBe('confirmed');
    await sink.close(signal);
    expect(await idsIn(store)).toEqual(idsFrom(1, 50).toSorted());
  },
);

it.each(['takes its time', 'is away'])(
  'holds no more than its limit for a store that %s, and continues when it is back',
  async (how) => {
    const { sink, store, spool } = await storeScene({ rotate: { bytes: 1024 }, compress: 'none' });
    const gate = Promise.withResolvers<void>();
    if (how === 'is away') store.fault = (verb) => (verb === 'putIfAbsent' ? 'no_place' : null);
    else store.gate = gate.promise;
    const results = await sendTens(sink, 1, 20);
    const taken = results.filter(({ status }) => status === 'held').length;
    const onDisk = readdirSync(spool, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.part'))
      .reduce((sum, name) => sum + statSync(join(spool, name)).size, 0);
    const reason = expect.stringContaining('nothing more is taken') as string;
    expect(results.at(-1)).toMatchObject({ status: 'retry', sink: true, reason });
    // 16 KiB wait; each part goes over its 1 KiB by one batch, and two are being closed or open.
    expect(onDisk).toBeLessThan(16 * 1024 + 3 * 5000);
    gate.resolve();
    store.fault = () => null;
    await sink.flush();
    expect(await sink.send(deliver(1001, 1), signal)).toMatchObject([HELD]);
    await sink.close(signal);
    expect(await idsIn(store)).toHaveLength(taken + 1);
  },
);

it('writes the next part while the one before is synced, and a flush waits for both', async () => {
  const { sink, store } = await storeScene({ rotate: { bytes: 1024 }, compress: 'none' });
  const gate = Promise.withResolvers<void>();
  const close = vi.spyOn(AppendFile.prototype, 'close').mockImplementationOnce(async function (
    this: AppendFile,
  ) {
    await gate.promise;
    await this.close();
  });
  await sink.send(deliver(1, 10), signal);
  const [next] = await sink.send(deliver(11, 10), signal);
  expect([await stateOf(next), close.mock.calls.length, store.puts]).toEqual(['held', 1, []]);
  let isFlushed = false;
  const flushing = sink.flush().then((flushed) => ((isFlushed = true), flushed));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isFlushed).toBe(false);
  gate.resolve();
  expect((await flushing).files).toHaveLength(2);
  await sink.close(signal);
  expect(await idsIn(store)).toHaveLength(20);
});

it('knows again what is held after a start, answers with the same promise, and writes it once', async () => {
  const { sink, store, start } = await storeScene();
  await sink.send(deliver(1, 20), signal);
  await sink.close(KILLED);
  expect(store.puts).toEqual([]);
  const again = await start();
  const results = await again.sink.send(deliver(1, 30), signal);
  expect(new Set(results.map((result) => result.status === 'held' && result.until)).size).toBe(1);
  await again.sink.close(signal);
  for (const result of results) expect(await stateOf(result)).toBe('confirmed');
  expect(await idsIn(store)).toHaveLength(30);
});

it.each([
  ['cut short', (bytes: Buffer) => bytes.subarray(0, -20), false],
  ['of other records', () => gzipSync('{}\n'), false],
  ['of another compressor', (bytes: Buffer) => gzipSync(gunzipSync(bytes), { level: 9 }), true],
])(
  'a compressed file of before a crash, %s: what is put holds the records of the part',
  async (_, change, stays) => {
    const { sink, store, start, fileIn } = await storeScene();
    store.fault = (verb) => (verb === 'putIfAbsent' ? 'busy' : null);
    await sink.send(deliver(1, 200), signal);
    await sink.flush();
    await sink.close(KILLED);
    store.fault = () => null;
    const changed = change(readFileSync(fileIn('.gz')));
    writeFileSync(fileIn('.gz'), changed);
    await (await start()).sink.close(signal);
    const [key = ''] = await checkChains(store);
    expect((await bytesOf(store, key)).equals(changed)).toBe(stays);
    expect((await recordsIn(store)).map(({ id }) => id)).toEqual(idsFrom(1, 200));
  },
);

it('knows what was confirmed for as long as anything older is held, also after two starts', async () => {
  const { sink, store, spool, context, start } = await storeScene({ partitionBy: ['type'] });
  const old = deliver(1, 1, { type: 'old' });
  const young = deliver(2, 5, { type: 'young' });
  store.fault = (_, key) => (key.includes('type=old') ? 'busy' : null);
  await sink.send([...old, ...young], signal);
  await sink.flush();
  context.clock.advance(100_000);
  await sink.close(KILLED);
  for (let starts = 0; starts < 2; starts += 1) {
    const again = await start();
    const results = await again.sink.send([...old, ...young], signal);
    expect(await Promise.all(results.map(stateOf))).toEqual(['held', ...young.map(() => 'delivered')]);
    await again.sink.close(KILLED);
  }
  store.fault = () => null;
  const last = await start();
  await expect.poll(() => store.puts.filter((key) => key.includes('type=old')).length).toBe(1);
  await last.sink.flush();
  last.context.clock.advance(40_000);
  await expect.poll(() => files(spool)).toEqual([]);
  await last.sink.close(signal);
  expect(await idsIn(store)).toHaveLength(6);
});

type Scene = Awaited<ReturnType<typeof storeScene>>;

it.each([
  [
    'fault 45: a part that somebody removes',
    async ({ fileIn, context }: Scene) => {
      rmSync(fileIn('.part'));
      context.clock.advance(2000);
    },
    ['spool_lost'],
  ],
  [
    'a spool that somebody removes',
    async ({ spool, context }: Scene) => {
      rmSync(spool, { recursive: true });
      context.clock.advance(2000);
    },
    ['folder_replaced', 'spool_lost'],
  ],
  [
    'fault 7: a part that cannot be synced',
    async ({ sink }: Scene) => {
      await failOnce('datasync', 'EIO: made up');
      await sink.flush();
    },
    ['spool_lost'],
  ],
])('%s: what it held is sent again', async (_, spoil, troubles) => {
  const scene = await storeScene();
  const { sink, store } = scene;
  const [lost] = await sink.send(deliver(1, 1), signal);
  await spoil(scene);
  await expect.poll(() => stateOf(lost)).toBe('lost');
  expect([sink.troubles().map(({ code }) => code), store.puts]).toEqual([troubles, []]);
  const [again] = await sink.send(deliver(1, 1), signal);
  await sink.close(signal);
  expect([await stateOf(again), await idsIn(store)]).toEqual(['confirmed', ['msg_1']]);
});

it('knows the hash of a part that could not be written at first', async () => {
  const { sink, store } = await storeScene({ compress: 'none' });
  await sink.send(deliver(1, 1), signal);
  await failOnce('write', 'ENOSPC: made up');
  expect(await sink.send(deliver(2, 1), signal)).toMatchObject([{ status: 'retry' }]);
  await sink.send(deliver(2, 1), signal);
  // The store in a folder looks whether the bytes are what was said of them.
  expect(await sink.flush()).toMatchObject({ files: [{ records: 2 }], failed: [] });
  await sink.close(signal);
  expect(await idsIn(store)).toEqual(['msg_1', 'msg_2']);
});

it('two writers with one place do not touch each other', async () => {
  const { store, spool, sink } = await storeScene({ rotate: { bytes: 3072 } });
  const other = storeSink(store, `${spool}-other`, { rotate: { bytes: 3072 } }).sink;
  await other.open();
  await Promise.all([sendTens(sink, 1, 10), sendTens(other, 1001, 10)]);
  await Promise.all([sink.close(signal), other.close(signal)]);
  expect(new Set(await idsIn(store)).size).toBe(200);
  const manifests = store.puts.filter((key) => key.startsWith('_manifest')).map((key) => key.split('/')[1]);
  expect(new Set(manifests).size).toBe(2);
});

it('two copies of one spool make one chain: what the other has put is not overwritten', async () => {
  const { store, spool, sink, fileIn } = await storeScene();
  await sink.send(deliver(1, 1), signal);
  expect(fileIn('.part')).not.toBe(spool);
  cpSync(spool, `${spool}-copy`, { recursive: true });
  await sink.close(signal);
  const { sink: twin } = storeSink(store, `${spool}-copy`);
  await twin.open();
  await twin.send(deliver(2, 1), signal);
  await twin.close(signal);
  expect(new Set((await recordsIn(store)).map(({ id }) => id))).toEqual(new Set(['msg_1', 'msg_2']));
});

it('does not open while the store is away, and says what to do', async () => {
  const { store, spool } = await storeScene();
  const { sink } = storeSink(store, `${spool}-other`);
  store.fault = () => 'denied';
  await expect(sink.open()).rejects.toThrow('renew the credentials');
  store.fault = () => null;
  await sink.open();
  await sink.close(signal);
});

it('never overwrites an object that lies where one of its own is to be', async () => {
  const { sink, store } = await storeScene();
  const put = store.putIfAbsent.bind(store);
  store.putIfAbsent = async (key, body, own) => {
    if (key.includes('.ndjson') && store.puts.length === 0) await put(key, { bytes: Buffer.from('other') });
    return put(key, body, own);
  };
  const [result] = await sink.send(deliver(1, 1), signal);
  await sink.close(signal);
  expect(await stateOf(result)).toBe('confirmed');
  const [other, , own] = store.puts.filter((key) => key.includes('.ndjson'));
  expect((await bytesOf(store, other ?? '')).toString()).toBe('other');
  expect((await bytesOf(store, own ?? '')).length).toBeGreaterThan(10);
});

it('mends a torn end of a part before it is put', async () => {
  const { sink, store, start, fileIn } = await storeScene();
  await sink.send(deliver(1, 3), signal);
  await sink.close(KILLED);
  appendFileSync(fileIn('.part'), '{"id":"torn');
  await (await start()).sink.close(signal);
  expect(await idsIn(store)).toHaveLength(3);
});
