import { Worker } from 'node:worker_threads';
import { MillraceError, messageOf } from '../core/errors.ts';
import { transferable, type Call } from '../lib/remote.ts';
import { threadProgram } from '../lib/thread-pool.ts';
import type { Repair } from './mend.ts';
import type { JournalOptions, Opened, Reply } from './protocol.ts';

/**
 * Hardly anything that a commit leaves behind outlives it. Left to itself V8 lets such objects, and the buffers that came
 * with them, gather in more and more memory: 150 MB after a million events, where this needs 50.
 */
const YOUNG_MB = 12;

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: MillraceError) => void;
}

/** What carries out calls of the journal's store, in the order they are made. */
export type Writer = Pick<WriterThread, 'lastSeq' | 'repairs' | 'call' | 'close'>;

/**
 * The thread that owns the database, seen from the main thread: calls are answered in the order they are made.
 *
 * Modes: running → failed (a write went wrong in a way that is not "full", or the thread ended: every call rejects, and
 * `onFailure` is called once). Either → closed.
 */
export class WriterThread {
  readonly #worker: Worker;
  readonly #onFailure: (error: MillraceError) => void;
  readonly #calls: Waiting[] = [];
  #mode: 'running' | 'failed' | 'closed' = 'running';
  readonly lastSeq: number;
  /** What the start found damaged or gone. */
  readonly repairs: readonly Repair[];

  private constructor(
    worker: Worker,
    { lastSeq, repairs }: Extract<Opened, { opened: true }>,
    onFailure: (error: MillraceError) => void,
  ) {
    this.#worker = worker;
    this.lastSeq = lastSeq;
    this.repairs = repairs;
    this.#onFailure = onFailure;
    worker.on('message', (reply: Reply) => this.#settle(reply));
    worker.on('error', (error) => this.#fail(messageOf(error)));
    worker.on('exit', () => {
      this.#fail('the writer thread ended');
      this.#rejectAll('the writer thread ended');
    });
  }

  /** @throws MillraceError journal_in_use, journal_missing, journal_unreadable, folder_unwritable */
  static async start(
    { path, retention, maxBytes, dedupWindow, create, recovery }: JournalOptions,
    onFailure: (error: MillraceError) => void,
  ): Promise<WriterThread> {
    const worker = new Worker(threadProgram('worker', import.meta.url), {
      workerData: { path, retention, maxBytes, dedupWindow, create, recovery } satisfies JournalOptions,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const opened = await new Promise<Opened>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    if (opened.opened) return new WriterThread(worker, opened, onFailure);
    throw new MillraceError(opened.code, opened.detail);
  }

  /** Rejects with a MillraceError: journal_full, journal_unreadable, journal_failed. */
  call(call: Call): Promise<unknown> {
    if (this.#mode !== 'running')
      return Promise.reject(new MillraceError('journal_failed', `the journal is ${this.#mode}`));
    return new Promise((resolve, reject) => {
      this.#calls.push({ resolve, reject });
      this.#worker.postMessage(call, transferable(call.args));
    });
  }

  /** Closes the database, unless a write has failed, and ends the thread. */
  async close(): Promise<void> {
    if (this.#mode === 'closed') return;
    const closing = this.#mode === 'running' ? this.call({ op: 'close', args: [] }) : null;
    this.#mode = 'closed';
    await closing?.catch(() => undefined);
    await this.#worker.terminate();
  }

  #settle(reply: Reply): void {
    const call = this.#calls.shift();
    if (reply.ok) return call?.resolve(reply.value);
    call?.reject(new MillraceError(reply.code, reply.detail));
    if (reply.code === 'journal_failed') this.#fail(reply.detail);
  }

  #fail(detail: string): void {
    if (this.#mode !== 'running') return;
    this.#mode = 'failed';
    this.#onFailure(this.#rejectAll(detail));
  }

  #rejectAll(detail: string): MillraceError {
    const error = new MillraceError('journal_failed', detail);
    for (const call of this.#calls.splice(0)) call.reject(error);
    return error;
  }
}
