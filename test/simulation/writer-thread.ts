import { MillraceError } from '../../src/core/errors.ts';
import { answer } from '../../src/journal/perform.ts';
import type { JournalOptions } from '../../src/journal/database.ts';
import { Store } from '../../src/journal/store.ts';
import type { Call } from '../../src/lib/remote.ts';
import { here } from './world.ts';

export type Writer = Pick<WriterThread, 'lastSeq' | 'repairs' | 'call' | 'onFailure' | 'close'>;

/** The writer thread without a thread: it answers each call in a later turn, in their order. */
export class WriterThread {
  readonly #store: Store;
  #onFailure: (error: MillraceError) => void = () => undefined;
  readonly lastSeq: number;
  readonly repairs: Store['repairs'];
  #mode: 'running' | 'failed' | 'closed' = 'running';
  #last: Promise<unknown> = Promise.resolve();

  private constructor(store: Store) {
    this.#store = store;
    this.lastSeq = store.lastSeq;
    this.repairs = store.repairs;
  }

  static start(options: JournalOptions): Promise<WriterThread> {
    return here().scheduler.ask(() => new WriterThread(new Store(options)));
  }

  onFailure(listener: (error: MillraceError) => void): void {
    this.#onFailure = listener;
  }

  call(call: Call): Promise<unknown> {
    const before = this.#last;
    const answered = (async () => {
      await before;
      return here().scheduler.ask(() => this.#perform(call));
    })();
    this.#last = answered.catch(() => undefined);
    return answered;
  }

  async close(): Promise<void> {
    if (this.#mode === 'closed') return;
    const isSound = this.#mode === 'running';
    this.#mode = 'closed';
    await this.#last;
    if (isSound) await here().scheduler.ask(() => this.#closeFiles());
  }

  #perform(call: Call): unknown {
    if (this.#mode === 'failed') throw new MillraceError('journal_failed', 'the journal is failed');
    const reply = answer(this.#store, call);
    if (reply.ok) return reply.value;
    const error = new MillraceError(reply.code, reply.detail);
    if (reply.code === 'journal_failed') {
      this.#mode = 'failed';
      this.#onFailure(error);
    }
    throw error;
  }

  #closeFiles(): void {
    try {
      this.#store.close();
    } catch {
      // It is closed, or its disk is in trouble: a process that is gone does neither.
    }
  }
}
