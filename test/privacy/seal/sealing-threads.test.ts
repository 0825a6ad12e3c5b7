import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { verifyArchive } from '../../../src/archive/verify.ts';
import { jobsFor, sealed, type SealJob } from '../../../src/privacy/seal/job.ts';
import { parseSealed, type SealedRecord } from '../../../src/core/sealed-record.ts';
import { BufferPool } from '../../../src/lib/buffer-pool.ts';
import { KeyStore, type OwnedKey } from '../../../src/privacy/seal/key-store.ts';
import { SealingThreads } from '../../../src/privacy/seal/sealing-threads.ts';
import { awkwardBodies, contractEvent } from '../../../src/sinks/contract-events.ts';
import { deliver, filesSink, signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { until } from '../../support/until.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { OpensSealed } from './open-sealed.ts';
import { keysOf, MASTER, owner, ringOf, runOf, sealedPlace, subject, type Sealed } from './support.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const key = (n: number): OwnedKey => ({
  id: n.toString(16).padStart(32, '0'),
  key: Buffer.alloc(32, n),
});

function jobs(count: number): SealJob[] {
  const events = Array.from({ length: count }, (_, n) => contractEvent(n + 1, { body: bodyOf(n) }));
  const keys = events.map((_, n) => key(Math.floor(n / 5)));
  return [...jobsFor(events, keys, new BufferPool())];
}

function bodyOf(n: number): Buffer {
  const bodies = awkwardBodies();
  return bodies[n % bodies.length] ?? Buffer.from('{}');
}

const noise = (bytes: number): Buffer => Buffer.from(`{"a":"${randomBytes(bytes).toString('latin1')}"}`);

const keysNamed = (lines: Uint8Array): string[] => jsonLines<{ key: string }>(lines).map((line) => line.key);

/** Ends each thread that is handed a job, in the middle of it. */
function endThreads(): void {
  vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker) {
    void this.terminate();
  });
}

/** Holds back each job until it is let go. */
function holdJobs(): { release: () => void } {
  const post = Worker.prototype.postMessage;
  const held: (() => void)[] = [];
  vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker, ...args) {
    held.push(() => Reflect.apply(post, this, args));
  });
  return { release: () => held.splice(0).forEach((go) => go()) };
}

describe('threads that seal', () => {
  it('answer each job with its records, in order, in whatever order the threads are done', async () => {
    const threads = new SealingThreads();
    const all = jobs(1000);
    expect(all.length).toBeGreaterThan(5);
    const wanted = all.map(({ ids }) => ids.match(/.{32}/g));
    const answers = await Promise.all(all.map((job) => threads.seal(job)));
    expect(answers.map(keysNamed)).toEqual(wanted);
    await threads.close();
  });

  it('fail the job that cannot be done, say why without the key, and do the next', async () => {
    const threads = new SealingThreads();
    const [job] = jobs(1);
    const wrong = { ...job, keys: new Uint8Array(32).fill(0x41), receivedAt: Float64Array.of(Number.NaN) };
    const failed = await threads.seal(wrong as SealJob).catch((error: Error) => error);
    expect(failed).toBeInstanceOf(Error);
    expect(String(failed)).not.toContain('AAAA');
    const again = {
      ...job,
      keys: new Uint8Array(32).fill(0x41),
      lines: Uint8Array.of(10),
      receivedAt: Float64Array.of(Number.NaN),
    };
    expect(() => sealed(again as SealJob)).toThrow('Invalid time value');
    expect(again.keys.every((byte) => byte === 0)).toBe(true);
    const [next] = jobs(1);
    if (next !== undefined) expect(keysNamed(await threads.seal(next))).toHaveLength(1);
    await threads.close();
  });

  it('fail what was at work when they end, and start again', async () => {
    const threads = new SealingThreads();
    endThreads();
    const ended = await Promise.allSettled(jobs(1000).map((job) => threads.seal(job)));
    for (const each of ended)
      expect(each).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringContaining('a thread ended') },
      });
    vi.restoreAllMocks();
    const answers = await Promise.all(jobs(1000).map((job) => threads.seal(job)));
    expect(answers.flatMap(keysNamed)).toHaveLength(1000);
    await threads.close();
  });

  it('overwrite the lines they were handed, and the keys, also when what is sealed takes more room', async () => {
    const store = await KeyStore.open(join(await temporaryFolder(), 'keys'), MASTER);
    const ofSizes = [100, 5000, 30_000].map((bytes, n) => contractEvent(n + 1, { body: noise(bytes) }));
    await store.lend(ofSizes, async (keys) => {
      for (const [n, event] of ofSizes.entries()) {
        const [job] = jobsFor([event], [keys[n] as OwnedKey], new BufferPool());
        const lines = job === undefined ? '' : Buffer.from(job.lines).toString();
        const text = Buffer.from(sealed(job as SealJob)).toString();
        const opened = store.ring.open(parseSealed(Buffer.from(text.trimEnd())) as SealedRecord);
        expect(opened.ok && `${opened.line.toString()}\n`).toBe(lines);
        expect(Buffer.from(job?.keys ?? []).every((byte) => byte === 0)).toBe(true);
      }
      return Promise.resolve();
    });
    await store.close();
  });

  it('when closed: what waits fails, and nothing is left running', async () => {
    const threads = new SealingThreads();
    holdJobs();
    const waiting = Promise.allSettled(jobs(1000).map((job) => threads.seal(job)));
    await threads.close();
    expect(new Set((await waiting).map(({ status }) => status))).toEqual(new Set(['rejected']));
  });

  it('take no more than a few milliseconds of work at a time, a large record alone', () => {
    const large = contractEvent(1, { body: Buffer.from(`{"a":"${'x'.repeat(300_000)}"}`) });
    const events = [
      ...Array.from({ length: 300 }, (_, n) => contractEvent(n + 2)),
      large,
      contractEvent(302),
    ];
    const keys = events.map(() => key(1));
    const split = [...jobsFor(events, keys, new BufferPool())];
    expect(split.flatMap((job) => keysNamed(sealed(job)))).toHaveLength(302);
    expect(Math.max(...split.map(({ receivedAt }) => receivedAt.length))).toBeLessThanOrEqual(128);
    expect(split.at(-1)?.receivedAt).toHaveLength(1);
  });
});

function seen({ path, store }: Sealed): string[] {
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
  const opens = new OpensSealed(store, MASTER);
  return files
    .filter((name) => name.endsWith('.ndjson.gz'))
    .flatMap((name) => opens.idsIn(gunzipSync(readFileSync(join(path, name))).toString()));
}

const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).reduce(
    (sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0),
    0,
  );

describe('a sealed sink', () => {
  it('whose thread ends under a batch has that batch sent again, and every record once', async () => {
    const folder = await sealedPlace();
    const { sink, context } = filesSink(folder.path, { encrypt: folder.encrypt });
    await sink.open();
    await sink.send(deliver(1, 10), signal);
    endThreads();
    const batch = deliver(11, 300);
    const failed = await sink.send(batch, signal);
    expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(['retry']));
    expect(context.lines.at(-1)).toMatchObject({ level: 'warn', message: 'records could not be sealed' });
    vi.restoreAllMocks();
    const again = await sink.send(batch, signal);
    expect(new Set(again.map(({ status }) => status))).toEqual(new Set(['delivered']));
    await sink.close(signal);
    expect(seen(folder)).toEqual(Array.from({ length: 310 }, (_, n) => `msg_${n + 1}`));
    expect(await verifyArchive(folder.path)).toMatchObject({ records: 310, differences: [] });
  });

  it('erased while a batch is being sealed: nothing of it is written once the erasure is done', async () => {
    const folder = await sealedPlace();
    const { sink } = filesSink(folder.path, { encrypt: folder.encrypt });
    await sink.open();
    await sink.send(deliver(1, 14), signal);
    const jobsHeld = holdJobs();
    const sending = sink.send(deliver(15, 14), signal);
    const order: string[] = [];
    const begun = Promise.withResolvers<void>();
    void sending.then(() => order.push('written'));
    const run = runOf([subject('user-3')], { record: () => Promise.resolve(begun.resolve()) });
    const erasing = sink
      .erasable()
      ?.erase(run)
      .then(() => {
        order.push('erased');
        return sizeOf(folder.path);
      });
    await begun.promise;
    // Time enough for it to destroy a key under the batch.
    for (let look = 0; look < 50; look += 1)
      expect((await ringOf(folder.store)).counts).toMatchObject({ destroyed: 0 });
    expect(order).toEqual([]);
    jobsHeld.release();
    const after = await erasing;
    expect(order).toEqual(['written', 'erased']);
    expect(sizeOf(folder.path)).toBe(after);
    await sink.close(signal);
    const found = seen(folder);
    expect(found.filter((why) => why === 'erased')).toHaveLength(4);
    expect(found.filter((id) => id.startsWith('msg_'))).toHaveLength(24);
  });
});

describe('a key that is lent', () => {
  it('is destroyed only when it is given back; until then others get another key', async () => {
    const store = await KeyStore.open(join(await temporaryFolder(), 'keys'), MASTER);
    const [first] = await keysOf(store, [owner(1)]);
    const using = Promise.withResolvers<string>();
    const use = store.lend([owner(1)], () => using.promise);
    const order: string[] = [];
    const destroying = store.destroy(subject('user-1')).then(() => order.push('destroyed'));
    await until('the key is forgotten', () => store.ring.destroyed === 1);
    const next = keysOf(store, [owner(1)]);
    expect((await ringOf(store.path)).counts).toMatchObject({ active: 1, destroyed: 0 });
    order.push('given back');
    using.resolve('used');
    expect(await use).toBe('used');
    await destroying;
    expect(order).toEqual(['given back', 'destroyed']);
    expect((await next)[0]?.id).not.toBe(first?.id);
    await store.close();
  });

  it('is given back also by who fails', async () => {
    const store = await KeyStore.open(join(await temporaryFolder(), 'keys'), MASTER);
    await expect(store.lend([owner(1)], () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await store.destroy(subject('user-1'))).toBe(1);
    await store.close();
  });
});
