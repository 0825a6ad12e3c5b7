import { parentPort, workerData } from 'node:worker_threads';
import type { Answer } from '../lib/thread-pool.ts';
import type { Done, Job, Opening } from './job.ts';
import { LogWriter } from './log-files.ts';
import { readSigner } from './note.ts';

/** The thread of the log: hashing and syncing it there costs nobody who receives or writes. */
const port = parentPort;
if (port === null) throw new Error('the log of receipts runs as a worker thread only');

const { folder, origin, pem } = workerData as Opening;
let opened: Promise<LogWriter> | null = null;

async function perform({ entries, sign }: Job): Promise<Done> {
  opened ??= LogWriter.open(folder, readSigner(origin, pem));
  const log = await opened;
  if (entries !== null) log.append(Buffer.from(entries.buffer, entries.byteOffset, entries.length));
  const checkpoint = sign ? await log.checkpoint() : null;
  return { size: log.size, checkpoint };
}

port.on('message', (job: Job) => {
  perform(job).then(
    (value) => port.postMessage({ ok: true, value } satisfies Answer<Done>),
    (error: unknown) => {
      // The next one begins with what the last checkpoint is of.
      void opened?.then((log) => log.close()).catch(() => undefined);
      opened = null;
      port.postMessage({ ok: false, error } satisfies Answer<Done>);
    },
  );
});
