import type { SearchQuery, SearchResult } from '../../core/search.ts';
import { ThreadPool } from '../../lib/thread-pool.ts';
import type { SearchAnswer, SearchJob } from './search-thread.ts';

type Pool = ThreadPool<SearchJob, SearchAnswer>;

/** Milliseconds that one job reads on for: a search that comes meanwhile waits so long. */
const SLICE = 100;
/** Milliseconds after the last search at which the index is forgotten. */
const IDLE = 15 * 60_000;

/** The seqs of the events that a journal has now. */
export type Span = () => Promise<{ readonly firstSeq: number; readonly lastSeq: number }>;

/**
 * Searches a journal in a thread of its own, which begins with the first search: who never searches pays nothing.
 *
 * Modes: idle ⇄ indexed (a thread has the index; it ends when nobody has searched for a while). Either → closed.
 */
export class JournalSearch {
  readonly #path: string;
  readonly #span: Span;
  #pool: Pool | null = null;
  #isBuilding = false;
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
    if (this.#pool === null || this.#pool.hasEnded) this.#pool = newPool(this.#path);
    const pool = this.#pool;
    const { result, isComplete } = await this.#run(pool, query);
    if (!isComplete) void this.#build(pool);
    if (result === null) throw new Error('a search has a result');
    return result;
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#forget();
  }

  async #run(pool: Pool, query: SearchQuery | null): Promise<SearchAnswer> {
    const { firstSeq, lastSeq } = await this.#span();
    return pool.run({ firstSeq, lastSeq, ms: SLICE, query });
  }

  /** Reads on until the index has all. Whoever searches again is told what is wrong. */
  async #build(pool: Pool): Promise<void> {
    if (this.#isBuilding) return;
    this.#isBuilding = true;
    try {
      while (!pool.hasEnded && !(await this.#run(pool, null)).isComplete);
    } catch {
      await this.#forget();
    } finally {
      this.#isBuilding = false;
    }
  }

  #keepAlive(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#forget(), IDLE).unref();
  }

  async #forget(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const pool = this.#pool;
    this.#pool = null;
    await pool?.close();
  }
}

function newPool(path: string): Pool {
  const program = import.meta.url.endsWith('.ts') ? './search-thread.ts' : './search-thread.js';
  return new ThreadPool(new URL(program, import.meta.url), path, 1);
}
