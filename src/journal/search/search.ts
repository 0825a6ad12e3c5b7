import type { SearchQuery, SearchResult } from '../../core/search.ts';
import { ThreadPool, threadProgram } from '../../lib/thread-pool.ts';
import type { ReadStretch, Stretch } from './search-index.ts';

/** What the thread that finds is asked: to look for something, or to take what was read and to say what is to be read next. */
export interface FindingJob {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly query: SearchQuery | null;
  readonly read: ReadStretch | null;
}

export interface FindingAnswer {
  readonly result: SearchResult | null;
  readonly isComplete: boolean;
  readonly next: Stretch | null;
}

type Finder = ThreadPool<FindingJob, FindingAnswer>;
type Reader = ThreadPool<Stretch, ReadStretch>;

/** Milliseconds after the last search at which the index is forgotten. */
const IDLE = 15 * 60_000;

/** The seqs of the events that a journal has now. */
export type Span = () => Promise<{ readonly firstSeq: number; readonly lastSeq: number }>;

/**
 * Searches a journal in a thread of its own, which begins with the first search: who never searches pays nothing. What has
 * come at last it reads itself. All else is read by another thread, which gives way to receiving where cores are short: an
 * answer never waits for it.
 *
 * Modes: idle ⇄ indexed (a thread has the index; it ends when nobody has searched for a while). Either → closed.
 */
export class JournalSearch {
  readonly #path: string;
  readonly #span: Span;
  #finder: Finder | null = null;
  #reader: Reader | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(path: string, span: Span) {
    this.#path = path;
    this.#span = span;
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
    const { firstSeq, lastSeq } = await this.#span();
    const handOver = job.read === null ? [] : [job.read.chunk.buffer];
    return finder.run({ firstSeq, lastSeq, ...job }, handOver);
  }

  /** Reads on until the index has all. Whoever searches again is told what is wrong. */
  async #read(finder: Finder): Promise<void> {
    if (this.#reader !== null) return;
    const reader: Reader = newPool('reading', this.#path);
    this.#reader = reader;
    try {
      for (let read: ReadStretch | null = null; ;) {
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
