import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { SealJob } from './job.ts';
import type { Sealed } from './sealing-thread.ts';

/** One core stays for the thread that receives, as far as there are several. */
const MOST = Math.max(1, Math.min(3, availableParallelism() - 1));
/** What a job leaves is garbage at once; with more room it would be kept for longer, in each thread. */
const LIMITS = { maxYoungGenerationSizeMb: 8 };

const CLOSED = 'sealing has ended';

interface Task {
  readonly job: SealJob;
  readonly resolve: (lines: Uint8Array<ArrayBuffer>) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Threads that seal, so that the one that receives does not. They are started when there is work for them, and each has
 * one job at a time; what comes meanwhile waits, as much as its sender lets it. A thread that ends fails its job, and
 * the next job starts another.
 *
 * Modes: open → closed, for good.
 */
export class SealingThreads {
  readonly #idle: Worker[] = [];
  /** What each thread is at work on. */
  readonly #busy = new Map<Worker, Task>();
  readonly #waiting: Task[] = [];
  #mode: 'open' | 'closed' = 'open';

  /** The sealed records, in order. The job's lines are gone afterwards. @throws Error when its thread fails */
  seal(job: SealJob): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#mode === 'closed') return Promise.reject(new Error(CLOSED));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      this.#next();
    });
  }

  /** Ends the threads. What waits or is at work fails. */
  async close(): Promise<void> {
    this.#mode = 'closed';
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(CLOSED));
    await Promise.all([...this.#idle, ...this.#busy.keys()].map((thread) => thread.terminate()));
  }

  #next(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#idle.pop() ?? (this.#busy.size < MOST ? this.#started() : null);
      const task = thread === null ? undefined : this.#waiting.shift();
      if (thread === null || task === undefined) return;
      this.#busy.set(thread, task);
      thread.postMessage(task.job, [task.job.lines.buffer]);
    }
  }

  #started(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './sealing-thread.ts' : './sealing-thread.js';
    const thread = new Worker(new URL(file, import.meta.url), { resourceLimits: LIMITS });
    let why = 'a sealing thread ended';
    thread.on('message', (answer: Sealed) => this.#settle(thread, answer));
    thread.on('error', (error) => (why = `a sealing thread ended: ${error.message}`));
    thread.on('exit', () => this.#ended(thread, why));
    return thread;
  }

  #settle(thread: Worker, answer: Sealed): void {
    const task = this.#busy.get(thread);
    this.#busy.delete(thread);
    this.#idle.push(thread);
    if (answer.ok) task?.resolve(answer.lines);
    else task?.reject(new Error(answer.reason));
    this.#next();
  }

  #ended(thread: Worker, why: string): void {
    const task = this.#busy.get(thread);
    this.#busy.delete(thread);
    const place = this.#idle.indexOf(thread);
    if (place !== -1) this.#idle.splice(place, 1);
    task?.reject(new Error(why));
    this.#next();
  }
}
