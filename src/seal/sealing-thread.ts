import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { Answer } from '../lib/thread-pool.ts';
import { sealed, type SealJob } from './job.ts';

/** How much later than the thread that receives it has its turn, where cores are short: it gets a tenth of its time. */
const NICER = 10;

const port = parentPort;
if (port === null) throw new Error('sealing runs as a worker thread only');

try {
  // Linux alone takes it for this thread and not for the process.
  if (process.platform === 'linux')
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICER));
} catch {
  // Not allowed, as by a unit's SystemCallFilter: then it is one thread among others.
}

port.on('message', (job: SealJob) => {
  try {
    const lines = sealed(job);
    port.postMessage({ ok: true, value: lines } satisfies Answer<Uint8Array>, [lines.buffer]);
  } catch (error) {
    port.postMessage({ ok: false, error } satisfies Answer<Uint8Array>);
  }
});
