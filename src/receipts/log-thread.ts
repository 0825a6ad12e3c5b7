import { parentPort, workerData } from 'node:worker_threads';
import type { Answer } from '../lib/thread-pool.ts';
import type { Done, Job, Opening } from './job.ts';
import { findDocument } from './documents.ts';
import { keepCosigned, LogReader, LogWriter } from './log-files.ts';
import { readSigner } from './note.ts';

/** The thread of the log: hashing and syncing it there costs nobody who receives or writes. */
const port = parentPort;
if (port === null) throw new Error('the log of receipts runs as a worker thread only');

const { folder, origin, pem } = workerData as Opening;
const signer = readSigner(origin, pem);
let opened: Promise<LogWriter> | null = null;

const reader = new LogReader(folder);

/** What leaves the log as it is. */
async function look({ find, between, cosigned = '' }: Job): Promise<Done> {
  if (find !== undefined) {
    const found = await findDocument(find, reader, signer);
    return { size: 0, checkpoint: null, found };
  }
  if (between !== undefined) {
    const consistency = await reader.consistency(...between);
    return { size: 0, checkpoint: null, consistency };
  }
  keepCosigned(folder, cosigned);
  return { size: 0, checkpoint: null };
}

async function perform({ entries, sign, before }: Job): Promise<Done> {
  opened ??= LogWriter.open(folder, signer, before);
  const log = await opened;
  if (entries !== null) log.append(Buffer.from(entries.buffer, entries.byteOffset, entries.length));
  const checkpoint = sign ? await log.checkpoint() : null;
  return { size: log.size, checkpoint, hasMadeHashes: log.hasMadeHashes };
}

port.on('message', (job: Job) => {
  const isLook = job.find !== undefined || job.between !== undefined || job.cosigned !== undefined;
  const work = isLook ? look(job) : perform(job);
  work.then(
    (value) => port.postMessage({ ok: true, value } satisfies Answer<Done>),
    (error: unknown) => {
      if (isLook) return port.postMessage({ ok: false, error } satisfies Answer<Done>);
      // The next one begins with what the last checkpoint is of.
      void opened?.then((log) => log.close()).catch(() => undefined);
      opened = null;
      port.postMessage({ ok: false, error } satisfies Answer<Done>);
    },
  );
});
