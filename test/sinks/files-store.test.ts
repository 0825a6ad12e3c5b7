import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import type { SendResult } from '../../src/core/sink.ts';
import { AppendFile } from '../../src/lib/append-file.ts';
import { runContract } from './run-contract.ts';
import { bytesOf, checkChains, contractOf, FaultyStore, recordsIn, storeSink } from './store-support.ts';
import { deliver, signal, tempFolder } from './support.ts';

describe('files sink to a store: the sink contract', async () => {
  await runContract(async () => {
    const path = await mkdtemp(join(tmpdir(), 'millrace-'));
    const store = await FaultyStore.in(join(path, 'store'));
    const { sink } = storeSink(store, join(path, 'spool'), {
      partitionBy: ['date', 'type', 'team'],
    });
    return {
      sink,
      destinations: ['meals', 'sleep'],
      ...contractOf(store),
      dispose: () => rm(path, { recursive: true, force: true }),
    };
  });
});

async function stateOf(result: SendResult | undefined): Promise<string> {
  if (result?.status !== 'held') return result?.status ?? 'nothing';
  const turn = new Promise<string>((resolve) => setImmediate(() => resolve('held')));
  const said = result.until.then(
    () => 'confirmed',
    () => 'lost',
  );
  return await Promise.race([said, turn]);
}

const files = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && !/^lock|\.lock$|^newest-segment$/.test(entry.name))
    .map(({ name }) => name.replace(/^[^.]*/, '').replace(/^$/, '(none)'));

async function scene(options: object = {}) {
  const path = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  const spool = join(path, 'spool');
  return { store, spool, ...storeSink(store, spool, options) };
}

describe('files sink to a store', () => {
  it('confirms what is in its object and in the manifest, and not before', async () => {
    const { sink, store, context } = await scene();
    await sink.open();
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
    await checkChains(store);
    expect((await recordsIn(store)).map(({ id }) => id)).toEqual(['msg_1']);
  });

  it.each(['lost', 'unreachable', 'busy', 'denied', 'no_place'] as const)(
    'fault 46: each put answered %s for a while: nothing is lost, written twice or overwritten',
    async (fault) => {
      const { sink, store } = await scene({ rotate: { bytes: 1024 }, partitionBy: ['type'] });
      await sink.open();
      const failed = new Set<string>();
      store.fault = (verb, key) => {
        if (verb !== 'putIfAbsent' || failed.has(key)) return null;
        failed.add(key);
        return fault;
      };
      const results: SendResult[] = [];
      for (let from = 1; from <= 41; from += 10)
        results.push(...(await sink.send(deliver(from, 10), signal)));
      await expect.poll(() => sink.troubles().length).toBe(1);
      const [trouble] = sink.troubles();
      expect(trouble?.code).toBe(`store_${fault === 'lost' ? 'unreachable' : fault}`);
      for (let round = 0; round < 20; round += 1) await sink.flush();
      for (const result of results) expect(await stateOf(result)).toBe('confirmed');
      await sink.close(signal);
      await checkChains(store);
      expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(
        Array.from({ length: 50 }, (_, at) => `msg_${at + 1}`).toSorted(),
      );
    },
  );

  it('takes nothing more than it says from a store that answers, and takes its time', async () => {
    const { sink, store, spool } = await scene({ rotate: { bytes: 1024 }, compress: 'none' });
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    await sink.open();
    const results: SendResult[] = [];
    for (let from = 1; from <= 191; from += 10) results.push(...(await sink.send(deliver(from, 10), signal)));
    const taken = results.filter(({ status }) => status === 'held').length;
    const onDisk = readdirSync(spool, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.part'))
      .reduce((sum, name) => sum + statSync(join(spool, name)).size, 0);
    expect(results.at(-1)).toMatchObject({
      status: 'retry',
      reason: expect.stringContaining('nothing more is taken') as string,
    });
    // 16 KiB wait; each part goes over its 1 KiB by one batch, and two are being closed or open.
    expect(onDisk).toBeLessThan(16 * 1024 + 3 * 5000);
    gate.resolve();
    await sink.flush();
    const after = await sink.send(deliver(1001, 1), signal);
    expect(await stateOf(after[0])).toBe('held');
    await sink.close(signal);
    await checkChains(store);
    expect(await recordsIn(store)).toHaveLength(taken + 1);
  });

  it('writes the next part while the one before is synced, and a flush waits for both', async () => {
    const { sink, store } = await scene({ rotate: { bytes: 1024 }, compress: 'none' });
    await sink.open();
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
    close.mockRestore();
    await sink.close(signal);
    await checkChains(store);
    expect(await recordsIn(store)).toHaveLength(20);
  });

  it('knows again what is held after a start, answers with the same promise, and writes it once', async () => {
    const { sink, store, spool } = await scene();
    await sink.open();
    await sink.send(deliver(1, 20), signal);
    await sink.close(AbortSignal.abort());
    expect(store.puts).toEqual([]);
    const again = storeSink(store, spool);
    await again.sink.open();
    const results = await again.sink.send(deliver(1, 30), signal);
    expect(new Set(results.map((result) => result.status === 'held' && result.until)).size).toBe(1);
    await again.sink.close(signal);
    for (const result of results) expect(await stateOf(result)).toBe('confirmed');
    await checkChains(store);
    expect(await recordsIn(store)).toHaveLength(30);
  });

  it.each([
    ['cut short', (bytes: Buffer) => bytes.subarray(0, -20), false],
    ['of other records', () => gzipSync('{}\n'), false],
    ['of another compressor', (bytes: Buffer) => gzipSync(gunzipSync(bytes), { level: 9 }), true],
  ])(
    'a compressed file of before a crash, %s: what is put holds the records of the part',
    async (_, change, stays) => {
      const { sink, store, spool } = await scene();
      await sink.open();
      store.fault = (verb) => (verb === 'putIfAbsent' ? 'busy' : null);
      await sink.send(deliver(1, 200), signal);
      await sink.flush();
      await sink.close(AbortSignal.abort());
      store.fault = () => null;
      const found = readdirSync(spool, { recursive: true, encoding: 'utf8' }).find((name) =>
        name.endsWith('.gz'),
      );
      const path = join(spool, found ?? '');
      const changed = change(readFileSync(path));
      writeFileSync(path, changed);
      const again = storeSink(store, spool);
      await again.sink.open();
      await again.sink.close(signal);
      const [key = ''] = await checkChains(store);
      expect((await bytesOf(store, key)).equals(changed)).toBe(stays);
      expect((await recordsIn(store)).map(({ id }) => id)).toEqual(
        Array.from({ length: 200 }, (_each, at) => `msg_${at + 1}`),
      );
    },
  );

  it('knows what was confirmed for as long as anything older is held, also after two starts', async () => {
    const { sink, store, spool, context } = await scene({ partitionBy: ['type'] });
    await sink.open();
    const old = deliver(1, 1, { type: 'old' });
    const young = deliver(2, 5, { type: 'young' });
    store.fault = (_, key) => (key.includes('type=old') ? 'busy' : null);
    await sink.send([...old, ...young], signal);
    await sink.flush();
    context.clock.advance(100_000);
    await sink.close(AbortSignal.abort());
    for (let starts = 0; starts < 2; starts += 1) {
      const again = storeSink(store, spool, { partitionBy: ['type'] });
      await again.sink.open();
      const results = await again.sink.send([...old, ...young], signal);
      expect(await Promise.all(results.map(stateOf))).toEqual(['held', ...young.map(() => 'delivered')]);
      await again.sink.close(AbortSignal.abort());
    }
    store.fault = () => null;
    const last = storeSink(store, spool, { partitionBy: ['type'] });
    await last.sink.open();
    await expect.poll(() => store.puts.filter((key) => key.includes('type=old')).length).toBe(1);
    await last.sink.flush();
    last.context.clock.advance(40_000);
    await expect.poll(() => files(spool)).toEqual([]);
    await last.sink.close(signal);
    await checkChains(store);
    expect(await recordsIn(store)).toHaveLength(6);
  });

  it('fault 45: a part that somebody removes is sent again, and told', async () => {
    const { sink, store, spool, context } = await scene();
    await sink.open();
    const [lost] = await sink.send(deliver(1, 1), signal);
    const part = readdirSync(spool, { recursive: true, encoding: 'utf8' }).find((name) =>
      name.endsWith('.part'),
    );
    unlinkSync(join(spool, part ?? ''));
    context.clock.advance(2000);
    await expect.poll(() => stateOf(lost)).toBe('lost');
    expect(sink.troubles()).toMatchObject([{ code: 'spool_lost' }]);
    const [again] = await sink.send(deliver(1, 1), signal);
    await sink.close(signal);
    expect(await stateOf(again)).toBe('confirmed');
    expect(await recordsIn(store)).toHaveLength(1);
  });

  it('fault 7: a part that cannot be synced is sent again', async () => {
    const { sink, store } = await scene();
    await sink.open();
    const [lost] = await sink.send(deliver(1, 1), signal);
    const handle = await open(import.meta.filename);
    await handle.close();
    const prototype = Object.getPrototypeOf(handle) as typeof handle;
    vi.spyOn(prototype, 'datasync').mockRejectedValueOnce(new Error('EIO: made up'));
    await sink.flush();
    vi.restoreAllMocks();
    expect([await stateOf(lost), store.puts]).toEqual(['lost', []]);
    const [again] = await sink.send(deliver(1, 1), signal);
    await sink.close(signal);
    expect(await stateOf(again)).toBe('confirmed');
    expect(await recordsIn(store)).toHaveLength(1);
  });

  it('knows the hash of a part that could not be written at first', async () => {
    const { sink, store } = await scene({ compress: 'none' });
    await sink.open();
    await sink.send(deliver(1, 1), signal);
    const handle = await open(import.meta.filename);
    await handle.close();
    const prototype = Object.getPrototypeOf(handle) as typeof handle;
    vi.spyOn(prototype, 'write').mockRejectedValueOnce(new Error('ENOSPC: made up'));
    const [failed] = await sink.send(deliver(2, 1), signal);
    vi.restoreAllMocks();
    expect(failed?.status).toBe('retry');
    await sink.send(deliver(2, 1), signal);
    // The store in a folder looks whether the bytes are what was said of them.
    expect(await sink.flush()).toMatchObject({ files: [{ records: 2 }], failed: [] });
    await sink.close(signal);
    await checkChains(store);
    expect((await recordsIn(store)).map(({ id }) => id)).toEqual(['msg_1', 'msg_2']);
  });

  it('goes on in a new spool when the old one is removed', async () => {
    const { sink, store, spool, context } = await scene();
    await sink.open();
    const [lost] = await sink.send(deliver(1, 1), signal);
    rmSync(spool, { recursive: true });
    context.clock.advance(2000);
    await expect.poll(() => stateOf(lost)).toBe('lost');
    const [again] = await sink.send(deliver(1, 1), signal);
    await sink.close(signal);
    expect(await stateOf(again)).toBe('confirmed');
    await checkChains(store);
  });

  it('two writers with one place do not touch each other', async () => {
    const { store, spool, sink } = await scene({ rotate: { bytes: 3072 } });
    const other = storeSink(store, `${spool}-other`, { rotate: { bytes: 3072 } }).sink;
    await Promise.all([sink.open(), other.open()]);
    for (let from = 1; from <= 91; from += 10)
      await Promise.all([sink.send(deliver(from, 10), signal), other.send(deliver(from + 1000, 10), signal)]);
    await Promise.all([sink.close(signal), other.close(signal)]);
    await checkChains(store);
    expect(new Set((await recordsIn(store)).map(({ id }) => id)).size).toBe(200);
    expect(
      new Set(store.puts.filter((key) => key.startsWith('_manifest')).map((key) => key.split('/')[1])).size,
    ).toBe(2);
  });

  it('two copies of one spool make one chain: what the other has put is not overwritten', async () => {
    const { store, spool, sink } = await scene();
    await sink.open();
    await sink.send(deliver(1, 1), signal);
    const copy = readdirSync(join(spool), { recursive: true, encoding: 'utf8' });
    expect(copy.some((name) => name.endsWith('.part'))).toBe(true);
    cpSync(spool, `${spool}-copy`, { recursive: true });
    await sink.close(signal);
    const { sink: twin } = storeSink(store, `${spool}-copy`);
    await twin.open();
    await twin.send(deliver(2, 1), signal);
    await twin.close(signal);
    expect(new Set((await recordsIn(store)).map(({ id }) => id))).toEqual(new Set(['msg_1', 'msg_2']));
  });

  it('takes no more than it may keep while the store is away, and goes on when it is back', async () => {
    const { sink, store } = await scene({ rotate: { bytes: 1024 } });
    await sink.open();
    store.fault = (verb) => (verb === 'putIfAbsent' ? 'no_place' : null);
    let sent = 0;
    for (; sent < 1000; sent += 10) {
      const [result] = await sink.send(deliver(sent + 1, 10), signal);
      if (result?.status === 'retry') break;
    }
    expect(sent).toBeLessThan(200);
    expect((await sink.send(deliver(sent + 1, 1), signal))[0]).toMatchObject({ status: 'retry', sink: true });
    store.fault = () => null;
    await sink.flush();
    expect((await sink.send(deliver(sent + 1, 1), signal))[0]?.status).toBe('held');
    await sink.close(signal);
    expect(await recordsIn(store)).toHaveLength(sent + 1);
  });

  it('keeps large events whole in the store, each once in the manifest', async () => {
    const { sink, store } = await scene();
    await sink.open();
    const [{ event } = { event: null }] = deliver(1, 1);
    if (event === null) throw new Error('no event');
    store.fault = (verb, key) => (verb === 'putIfAbsent' && key.startsWith('_manifest') ? 'lost' : null);
    await expect(sink.keep(event)).rejects.toThrow('cut');
    store.fault = () => null;
    const claim = await sink.keep(event);
    expect(await sink.keep(event)).toEqual(claim);
    await sink.close(signal);
    expect(store.puts.filter((key) => key === claim.path)).toHaveLength(3);
  });

  it('does not open while the store is away, and says what to do', async () => {
    const { sink, store } = await scene();
    store.fault = () => 'denied';
    await expect(sink.open()).rejects.toThrow('renew the credentials');
    store.fault = () => null;
    await sink.open();
    await sink.close(signal);
  });

  it('never overwrites an object that lies where one of its own is to be', async () => {
    const { sink, store } = await scene();
    await sink.open();
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
    const { sink, store, spool } = await scene();
    await sink.open();
    await sink.send(deliver(1, 3), signal);
    await sink.close(AbortSignal.abort());
    const part = readdirSync(spool, { recursive: true, encoding: 'utf8' }).find((name) =>
      name.endsWith('.part'),
    );
    appendFileSync(join(spool, part ?? ''), '{"id":"torn');
    const again = storeSink(store, spool);
    await again.sink.open();
    await again.sink.close(signal);
    expect(await recordsIn(store)).toHaveLength(3);
  });
});
