import { parentPort, workerData } from 'node:worker_threads';
import type { Answer } from '../lib/thread-pool.ts';
import type { Done, Job, Opening } from './job.ts';
import { findDocument } from './documents.ts';
import { LogReader, LogWriter } from './log-files.ts';
import { readSigner } from './note.ts';

/** The thread of the log: hashing and syncing it there costs nobody who receives or writes. */
const port = parentPort;
if (port === null) throw new Error('the log of receipts runs as a worker thread only');

const { folder, origin, pem } = workerData as Opening;
const signer = readSigner(origin, pem);
let opened: Promise<LogWriter> | null = null;

const reader = new LogReader(folder);

/** What leaves the log as it is. */
async function look(path: string): Promise<Done> {
  return { size: 0, found: await findDocument(path, reader, signer) };
}

async function perform({ entries, sign, before }: Job): Promise<Done> {
  opened ??= LogWriter.open(folder, signer, before);
  const log = await opened;
  if (entries !== null) log.append(Buffer.from(entries.buffer, entries.byteOffset, entries.length));
  if (sign) await log.checkpoint();
  return { size: log.size, hasMadeHashes: log.hasMadeHashes };
}

port.on('message', (job: Job) => {
  const { find } = job;
  const work = find === undefined ? perform(job) : look(find);
  work.then(
    (value) => port.postMessage({ ok: true, value } satisfies Answer<Done>),
    (error: unknown) => {
      if (find !== undefined) return port.postMessage({ ok: false, error } satisfies Answer<Done>);
      // The next one begins with what the last checkpoint is of.
      void opened?.then((log) => log.close()).catch(() => undefined);
      opened = null;
      port.postMessage({ ok: false, error } satisfies Answer<Done>);
    },
  );
});
