import { availableParallelism } from 'node:os';
import { ThreadPool, threadProgram } from '../../lib/thread-pool.ts';
import { buffersOf, type SealJob } from './job.ts';

type Pool = ThreadPool<SealJob, Uint8Array>;

/** A core stays for the thread that receives, unless these give way to it: on Linux, see `lib/thread-pool.ts`. */
const CORES = process.platform === 'linux' ? availableParallelism() : availableParallelism() - 1;
const MOST = Math.max(1, Math.min(3, CORES));

/**
 * Threads that seal, so that the one that receives does not. A thread that ends fails what is being sealed; the next job
 * starts others.
 *
 * Modes: open → closed, for good.
 */
export class SealingThreads {
  #pool: Pool | null = newPool();

  /** The sealed records, in order. The job's lines are gone afterwards. @throws Error when its thread fails */
  seal(job: SealJob): Promise<Uint8Array> {
    if (this.#pool === null) return Promise.reject(new Error('sealing has ended'));
    if (this.#pool.hasEnded) this.#pool = newPool();
    return this.#pool.run(job, buffersOf(job));
  }

  /** Ends the threads. What waits or is at work fails. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    await pool?.close();
  }
}

function newPool(): Pool {
  return new ThreadPool(threadProgram('sealing-thread', import.meta.url), null, MOST);
}
