import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { Answer } from '../../lib/thread-pool.ts';
import { type ReadStretch, readStretch, type Stretch } from './search-index.ts';

const port = parentPort;
if (port === null) throw new Error('reading for the search runs as a worker thread only');

try {
  // Receiving goes first where cores are short; Linux alone takes it for this thread and not for the process.
  if (process.platform === 'linux')
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + 10));
} catch {
  // Not allowed, as by a unit's SystemCallFilter: then it is one thread among others.
}

const path = workerData as string;
port.on('message', (stretch: Stretch) => {
  try {
    const value = readStretch(path, stretch);
    port.postMessage({ ok: true, value } satisfies Answer<ReadStretch>, [value.chunk.buffer]);
  } catch (error) {
    port.postMessage({ ok: false, error } satisfies Answer<ReadStretch>);
  }
});
