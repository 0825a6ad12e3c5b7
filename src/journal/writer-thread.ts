import { Worker } from 'node:worker_threads';
import { MillraceError, messageOf } from '../core/errors.ts';
import { transferable, type Call } from '../lib/remote.ts';
import { threadProgram } from '../lib/thread-pool.ts';
import type { JournalOptions } from './database.ts';
import type { Repair } from './mend.ts';
import type { Opened, Reply } from './perform.ts';

/**
 * Hardly any object of a commit outlives it. Without a limit V8 lets them, and the buffers that came with them, use more and more
 * memory: 150 MB after a million events instead of 50.
 */
const YOUNG_MB = 12;

interface PendingCall {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: MillraceError) => void;
}

/** Performs calls of the journal's store, in their order. */
export type Writer = Pick<WriterThread, 'lastSeq' | 'repairs' | 'call' | 'onFailure' | 'close'>;

/**
 * The thread that owns the database, as the main thread sees it.
 *
 * Modes: running → failed (a write failed for another reason than a full disk, or the thread ended: every call rejects). Either →
 * closed.
 */
export class WriterThread {
  readonly #worker: Worker;
  readonly #calls: PendingCall[] = [];
  #mode: 'running' | 'failed' | 'closed' = 'running';
  #failure: MillraceError | null = null;
  #onFailure: ((error: MillraceError) => void) | null = null;
  readonly lastSeq: number;
  /** What the start found damaged or lost. */
  readonly repairs: readonly Repair[];

  private constructor(worker: Worker, { lastSeq, repairs }: Extract<Opened, { opened: true }>) {
    this.#worker = worker;
    this.lastSeq = lastSeq;
    this.repairs = repairs;
    worker.on('message', (reply: Reply) => this.#settle(reply));
    worker.on('error', (error) => this.#fail(messageOf(error)));
    worker.on('exit', () => {
      this.#fail('the writer thread ended');
      this.#rejectAll('the writer thread ended');
    });
  }

  /** @throws MillraceError journal_in_use, journal_missing, journal_damaged, journal_unreadable, folder_unwritable */
  static async start({
    path,
    retention,
    maxBytes,
    dedupWindow,
    create,
    recovery,
  }: JournalOptions): Promise<WriterThread> {
    const worker = new Worker(threadProgram('worker', import.meta.url), {
      workerData: { path, retention, maxBytes, dedupWindow, create, recovery } satisfies JournalOptions,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const opened = await new Promise<Opened>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    if (opened.opened) return new WriterThread(worker, opened);
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

  /** Calls back once, when the thread fails or if it has failed. */
  onFailure(listener: (error: MillraceError) => void): void {
    this.#onFailure = listener;
    if (this.#failure !== null) listener(this.#failure);
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
    this.#failure = this.#rejectAll(detail);
    this.#onFailure?.(this.#failure);
  }

  #rejectAll(detail: string): MillraceError {
    const error = new MillraceError('journal_failed', detail);
    for (const call of this.#calls.splice(0)) call.reject(error);
    return error;
  }
}
