import { workerData } from 'node:worker_threads';
import { answerJobs, lowerPriority } from '../../lib/thread-pool.ts';
import { readRange, type UnreadRange } from './search-index.ts';

lowerPriority();
answerJobs(
  (range: UnreadRange) => readRange(workerData as string, range),
  ({ chunk }) => [chunk.buffer],
);
