import { workerData } from 'node:worker_threads';
import { answerJobs } from '../../lib/thread-pool.ts';
import type { FindingAnswer, FindingJob } from './search.ts';
import { SearchIndex } from './search-index.ts';

/** Milliseconds that a search reads the newest events; more for the first one, which has nothing else to show. */
const SLICE = { first: 150, later: 50 };

const index = new SearchIndex(workerData as string);

function answerTo({ firstSeq, lastSeq, query, read }: FindingJob): FindingAnswer {
  if (query === null) {
    index.update(firstSeq, lastSeq);
    if (read !== null) index.add(read);
    return { result: null, isComplete: index.isComplete, next: index.next() };
  }
  index.follow(firstSeq, lastSeq, index.isEmpty ? SLICE.first : SLICE.later);
  return { result: index.find(query), isComplete: index.isComplete, next: null };
}

answerJobs(answerTo);
