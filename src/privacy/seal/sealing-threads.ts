import { availableParallelism } from 'node:os';
import { ThreadPool, threadProgram } from '../../lib/thread-pool.ts';
import { buffersOf, type SealJob } from './job.ts';

type Pool = ThreadPool<SealJob, Uint8Array>;

/** Where threads have no lower priority (see `lib/thread-pool.ts`), a core stays free for the thread that receives. */
const CORES = process.platform === 'linux' ? availableParallelism() : availableParallelism() - 1;
const MOST = Math.max(1, Math.min(3, CORES));

/**
 * Seals in threads. When a thread ends, the jobs in progress fail; the next job starts new threads. A file of its own, as the
 * simulation replaces it.
 */
export class SealingThreads {
  #pool: Pool | null = newPool();

  /** The sealed records, in order. Takes the job's buffers. @throws Error when its thread fails, or after `close` */
  seal(job: SealJob): Promise<Uint8Array> {
    if (this.#pool === null) return Promise.reject(new Error('sealing has ended'));
    if (this.#pool.hasEnded) this.#pool = newPool();
    return this.#pool.run(job, buffersOf(job));
  }

  /** Ends the threads; jobs that wait or are in progress fail. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    await pool?.close();
  }
}

function newPool(): Pool {
  return new ThreadPool(threadProgram('sealing-thread', import.meta.url), null, MOST);
}
