import { workerData } from 'node:worker_threads';
import type { SearchQuery, SearchResult } from '../../core/search.ts';
import { answerJobs } from '../../lib/thread-pool.ts';
import { type ReadStretch, SearchIndex, type Stretch } from './search-index.ts';

/** Milliseconds that a search reads on for, what has come at last; the first one has nothing else to show. */
const SLICE = { first: 150, later: 50 };

/** What the thread is asked: to look for something, or to take what was read and to say what is to be read next. */
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

const index = new SearchIndex(workerData as string);

function answerTo({ firstSeq, lastSeq, query, read }: FindingJob): FindingAnswer {
  if (query === null) {
    index.look(firstSeq, lastSeq);
    if (read !== null) index.add(read);
    return { result: null, isComplete: index.isComplete, next: index.next() };
  }
  index.follow(firstSeq, lastSeq, index.isEmpty ? SLICE.first : SLICE.later);
  return { result: index.find(query), isComplete: index.isComplete, next: null };
}

answerJobs(answerTo);
