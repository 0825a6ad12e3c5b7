import { workerData } from 'node:worker_threads';
import { answerJobs, lowerPriority } from '../../lib/thread-pool.ts';
import { readStretch, type Stretch } from './search-index.ts';

lowerPriority();
answerJobs(
  (stretch: Stretch) => readStretch(workerData as string, stretch),
  ({ chunk }) => [chunk.buffer],
);
