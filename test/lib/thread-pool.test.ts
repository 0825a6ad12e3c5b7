import { afterEach, describe, expect, it } from 'vitest';
import { ThreadPool } from '../../src/lib/thread-pool.ts';

type Work = {
  readonly say?: string;
  readonly refuse?: string;
  readonly exit?: number;
  readonly hold?: boolean;
};

/** Answers with its work and its thread; ends, refuses or never answers when the work says so. */
const PROGRAM = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId, workerData } from 'node:worker_threads';
    parentPort.on('message', (work) => {
      if (work.exit !== undefined) process.exit(work.exit);
      if (work.refuse !== undefined) parentPort.postMessage({ ok: false, error: new RangeError(work.refuse) });
      else if (!work.hold) parentPort.postMessage({ ok: true, value: [workerData, work.say, threadId] });
    });
  `)}`,
);

const pools: ThreadPool<Work, [string, string, number]>[] = [];

function poolOf(size: number): ThreadPool<Work, [string, string, number]> {
  const pool = new ThreadPool<Work, [string, string, number]>(PROGRAM, 'data', size);
  pools.push(pool);
  return pool;
}

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

describe('a pool of threads', () => {
  it('answers every job with its own answer, however many wait, and uses all threads', async () => {
    const pool = poolOf(3);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.run({ say: `job ${n}` })));
    expect(answers.map(([data, said]) => [data, said])).toEqual(answers.map((_, n) => ['data', `job ${n}`]));
    expect(new Set(answers.map(([, , thread]) => thread)).size).toBe(3);
  });

  it('a job that is refused rejects alone, with what the thread threw', async () => {
    const pool = poolOf(1);
    const [refused, done] = await Promise.allSettled([pool.run({ refuse: 'no' }), pool.run({ say: 'yes' })]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { name: 'RangeError', message: 'no' } });
    expect(done).toMatchObject({ status: 'fulfilled', value: ['data', 'yes', expect.any(Number)] });
  });

  it('when a thread ends, what runs, what waits and what comes rejects', async () => {
    const pool = poolOf(2);
    const jobs = [{ hold: true }, { exit: 7 }, { say: 'never' }].map((work) => pool.run(work));
    const reason = expect.objectContaining({ message: 'a thread ended with code 7' });
    expect(await Promise.allSettled(jobs)).toEqual(jobs.map(() => ({ status: 'rejected', reason })));
    await expect(pool.run({ say: 'too late' })).rejects.toThrow('code 7');
  });

  it('when it is closed, jobs reject instead of waiting', async () => {
    const pool = poolOf(1);
    const jobs = [pool.run({ hold: true }), pool.run({ say: 'waits' })];
    const ended = Promise.allSettled(jobs);
    await pool.close();
    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('hands buffers over', async () => {
    const bytes = new Uint8Array(8);
    await poolOf(1).run({ say: 'taken' }, [bytes.buffer]);
    expect(bytes.buffer.detached).toBe(true);
  });
});
