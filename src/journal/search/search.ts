import type { SearchQuery, SearchResult } from '../../core/search.ts';
import { ThreadPool, threadProgram } from '../../lib/thread-pool.ts';
import type { ReadRange, UnreadRange } from './search-index.ts';

/** A job of the finding thread: a query; or, without one, to add what the reading thread has read and to name the next range. */
export interface FindingJob {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly query: SearchQuery | null;
  readonly read: ReadRange | null;
}

export interface FindingAnswer {
  readonly result: SearchResult | null;
  readonly isComplete: boolean;
  readonly next: UnreadRange | null;
}

type Finder = ThreadPool<FindingJob, FindingAnswer>;
type Reader = ThreadPool<UnreadRange, ReadRange>;

/** Milliseconds without a search after which the index is dropped. */
const IDLE = 15 * 60_000;

/** Reads the seqs of the events that the journal has now. */
export type SeqRange = () => Promise<{ readonly firstSeq: number; readonly lastSeq: number }>;

/**
 * Searches a journal in a thread that starts with the first search. That thread reads the newest events itself; a second one of low
 * priority reads all others, so that it takes no time from receiving, and no answer waits for it.
 *
 * Modes: idle ⇄ indexed (a thread has the index; it ends after some time without a search). Either → closed.
 */
export class JournalSearch {
  readonly #path: string;
  readonly #range: SeqRange;
  #finder: Finder | null = null;
  #reader: Reader | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(path: string, range: SeqRange) {
    this.#path = path;
    this.#range = range;
  }

  /** @throws Error when the journal cannot be read */
  async find(query: SearchQuery): Promise<SearchResult> {
    if (this.#isClosed) throw new Error('the search has ended');
    this.#keepAlive();
    if (this.#finder === null || this.#finder.hasEnded) this.#finder = newPool('finding', this.#path);
    const finder = this.#finder;
    const { result, isComplete } = await this.#run(finder, { query, read: null });
    if (!isComplete && finder === this.#finder) void this.#read(finder);
    if (result === null) throw new Error('a search has a result');
    return result;
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#forget();
  }

  async #run(finder: Finder, job: Pick<FindingJob, 'query' | 'read'>): Promise<FindingAnswer> {
    const { firstSeq, lastSeq } = await this.#range();
    const transfer = job.read === null ? [] : [job.read.chunk.buffer];
    return finder.run({ firstSeq, lastSeq, ...job }, transfer);
  }

  /** Reads until the index is complete. After an error the index is dropped, and the next search reports it. */
  async #read(finder: Finder): Promise<void> {
    if (this.#reader !== null) return;
    const reader: Reader = newPool('reading', this.#path);
    this.#reader = reader;
    try {
      for (let read: ReadRange | null = null; ;) {
        const { next } = await this.#run(finder, { query: null, read });
        if (next === null) break;
        read = await reader.run(next);
      }
      this.#reader = null;
      await reader.close();
    } catch {
      if (this.#reader === reader) await this.#forget();
    }
  }

  #keepAlive(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#forget(), IDLE).unref();
  }

  async #forget(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const threads = [this.#finder, this.#reader];
    this.#finder = null;
    this.#reader = null;
    await Promise.all(threads.flatMap((thread) => thread?.close() ?? []));
  }
}

function newPool<Work, Result>(name: 'finding' | 'reading', path: string): ThreadPool<Work, Result> {
  return new ThreadPool(threadProgram(`${name}-thread`, import.meta.url), path, 1);
}
