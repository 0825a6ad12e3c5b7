import { parentPort, workerData } from 'node:worker_threads';
import type { Answer } from '../lib/thread-pool.ts';
import { Tables } from '../warehouse/tables.ts';
import { handedOver, type Job, type Outcome, shapesJobs, type ThreadData } from './shaping-jobs.ts';

// A thread that shapes units and joins columns, one job after another.
const port = parentPort;
if (port === null) throw new Error('rows are shaped in a worker thread only');

const { documents, ...terms } = workerData as ThreadData;
const perform = shapesJobs({ ...terms, tables: new Tables(documents) });
port.on('message', (job: Job) => {
  try {
    const value = perform(job);
    port.postMessage({ ok: true, value } satisfies Answer<Outcome>, handedOver(value));
  } catch (error) {
    port.postMessage({ ok: false, error } satisfies Answer<Outcome>);
  }
});
