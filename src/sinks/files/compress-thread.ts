import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../core/errors.ts';
import { errorCode } from '../../lib/durable.ts';
import { type CompressAnswer, type CompressJob, writeFinished } from './compress.ts';

const port = parentPort;
if (port === null) throw new Error('compressing runs as a worker thread only');

/** Aborts the running job. */
let stop = new AbortController();

async function answer(job: CompressJob): Promise<CompressAnswer> {
  stop = new AbortController();
  try {
    return { ok: true, written: await writeFinished(job, stop.signal) };
  } catch (error) {
    return { ok: false, message: messageOf(error), code: errorCode(error) };
  }
}

port.on('message', (order: CompressJob | 'stop') => {
  if (order === 'stop') stop.abort();
  else void answer(order).then((said) => port.postMessage(said));
});
