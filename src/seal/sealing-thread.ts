import { parentPort } from 'node:worker_threads';
import { lowerPriority } from '../lib/lower-priority.ts';
import type { Answer } from '../lib/thread-pool.ts';
import { sealed, type SealJob } from './job.ts';

const port = parentPort;
if (port === null) throw new Error('sealing runs as a worker thread only');

lowerPriority();

port.on('message', (job: SealJob) => {
  try {
    const lines = sealed(job);
    port.postMessage({ ok: true, value: lines } satisfies Answer<Uint8Array>, [lines.buffer]);
  } catch (error) {
    port.postMessage({ ok: false, error } satisfies Answer<Uint8Array>);
  }
});
