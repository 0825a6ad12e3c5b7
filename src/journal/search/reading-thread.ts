import { parentPort, workerData } from 'node:worker_threads';
import { lowerPriority } from '../../lib/lower-priority.ts';
import type { Answer } from '../../lib/thread-pool.ts';
import { type ReadStretch, readStretch, type Stretch } from './search-index.ts';

const port = parentPort;
if (port === null) throw new Error('reading for the search runs as a worker thread only');

lowerPriority();

const path = workerData as string;
port.on('message', (stretch: Stretch) => {
  try {
    const value = readStretch(path, stretch);
    port.postMessage({ ok: true, value } satisfies Answer<ReadStretch>, [value.chunk.buffer]);
  } catch (error) {
    port.postMessage({ ok: false, error } satisfies Answer<ReadStretch>);
  }
});
