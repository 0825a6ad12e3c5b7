import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../core/errors.ts';
import { errorCode } from '../../lib/durable.ts';
import { type CompressAnswer, type CompressJob, writeFinished } from './compress.ts';

const port = parentPort;
if (port === null) throw new Error('compressing runs as a worker thread only');

const stop = new AbortController();
port.on('message', () => stop.abort());
try {
  const written = await writeFinished(workerData as CompressJob, stop.signal);
  port.postMessage({ ok: true, written } satisfies CompressAnswer);
} catch (error) {
  const answer: CompressAnswer = { ok: false, message: messageOf(error), code: errorCode(error) };
  port.postMessage(answer);
}
port.close();
