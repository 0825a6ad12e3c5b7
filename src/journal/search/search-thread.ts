import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { SearchQuery, SearchResult } from '../../core/search.ts';
import type { Answer } from '../../lib/thread-pool.ts';
import { SearchIndex } from './search-index.ts';

/** What the thread is asked: to read on, and to look for something. */
export interface SearchJob {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Milliseconds to read on for, at most. */
  readonly ms: number;
  /** Null only reads on. */
  readonly query: SearchQuery | null;
}

export interface SearchAnswer {
  readonly result: SearchResult | null;
  readonly isComplete: boolean;
}

const port = parentPort;
if (port === null) throw new Error('searching runs as a worker thread only');

try {
  // Receiving goes first where cores are short; Linux alone takes it for this thread and not for the process.
  if (process.platform === 'linux')
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + 10));
} catch {
  // Not allowed, as under our systemd unit: then it is one thread among others.
}

const index = new SearchIndex(workerData as string);
port.on('message', ({ firstSeq, lastSeq, ms, query }: SearchJob) => {
  try {
    index.build(firstSeq, lastSeq, ms);
    const result = query === null ? null : index.find(query);
    const value = { result, isComplete: index.isComplete };
    port.postMessage({ ok: true, value } satisfies Answer<SearchAnswer>);
  } catch (error) {
    port.postMessage({ ok: false, error } satisfies Answer<SearchAnswer>);
  }
});
