import { sealed, type SealJob } from '../../src/privacy/seal/job.ts';
import { here } from './world.ts';

/** Stands in for seal/sealing-threads.ts: no threads, which would finish in an order of their own. */
export class SealingThreads {
  #isOpen = true;

  seal(job: SealJob): Promise<Uint8Array> {
    if (!this.#isOpen) return Promise.reject(new Error('sealing has ended'));
    return here().scheduler.ask(() => sealed(job));
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    return Promise.resolve();
  }
}
