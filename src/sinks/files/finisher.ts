import { lstat, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import { errorCode } from '../../lib/durable.ts';
import { finishPart, type Finish } from './finish.ts';
import type { Part } from './part.ts';

/** Files being compressed at once; each takes a thread of libuv's pool of four, which the appends need too. */
const AT_ONCE = 2;
const RETRY_MS = 30_000;

/** Finishes sealed parts in the background, and tries again later when that fails: a full disk, say. */
export class Finisher {
  readonly #finish: Omit<Finish, 'signal'>;
  readonly #clock: Clock;
  readonly #onFinished: (part: Part) => void;
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #abort = new AbortController();
  /** Parts that failed, each with what cancels its next try. */
  readonly #failed = new Map<Part, () => void>();

  constructor(finish: Omit<Finish, 'signal'>, clock: Clock, onFinished: (part: Part) => void) {
    this.#finish = finish;
    this.#clock = clock;
    this.#onFinished = onFinished;
  }

  /** @param part sealed */
  add(part: Part): void {
    // Never rejects: a failure is kept for the next try.
    void this.#queue.add(() => this.#try(part));
  }

  /** Tries once more what failed, and settles when nothing is under way. Returns the parts left unfinished. */
  async drain(): Promise<number> {
    await this.#queue.onIdle();
    for (const [part, cancel] of this.#failed) {
      cancel();
      this.#failed.delete(part);
      this.add(part);
    }
    await this.#queue.onIdle();
    for (const cancel of this.#failed.values()) cancel();
    return this.#failed.size;
  }

  /** Settles when nothing is under way; what failed is tried again later. */
  idle(): Promise<void> {
    return this.#queue.onIdle();
  }

  /** Stops at the next chance; parts stay for the next start. */
  abort(): void {
    this.#abort.abort();
  }

  async #try(part: Part): Promise<void> {
    const { signal } = this.#abort;
    try {
      signal.throwIfAborted();
      const name = await finishPart(part, { ...this.#finish, signal });
      this.#finish.log.info({ file: name, records: part.stats.records }, 'finished an archive file');
      this.#onFinished(part);
      await prune(part);
    } catch (error) {
      if (await isGone(part.path)) {
        const fields = { path: part.path, records: part.stats.records };
        this.#finish.log.error(fields, 'an unfinished archive file has disappeared');
        return;
      }
      if (!signal.aborted) {
        this.#finish.log.error(
          { path: part.path, error: messageOf(error) },
          'archive file could not be finished',
        );
      }
      const cancel = signal.aborted ? () => undefined : this.#clock.after(RETRY_MS, () => this.#retry(part));
      this.#failed.set(part, cancel);
    }
  }

  #retry(part: Part): void {
    this.#failed.delete(part);
    this.add(part);
  }
}

async function isGone(path: string): Promise<boolean> {
  return lstat(path).then(
    () => false,
    (error: unknown) => errorCode(error) === 'ENOENT',
  );
}

/** Removes the folders a finished part has left empty; a part being made in one of them makes it again. */
async function prune(part: Part): Promise<void> {
  const { openFolder, folder } = part.place;
  const levels = folder === '' ? [] : folder.split('/');
  for (; levels.length > 0; levels.pop()) {
    try {
      await rmdir(join(openFolder, ...levels));
    } catch {
      return;
    }
  }
}
