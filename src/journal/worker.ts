import { parentPort, workerData } from 'node:worker_threads';
import { MillraceError, messageOf } from '../core/errors.ts';
import { answer } from './perform.ts';
import type { JournalOptions, Opened, Reply, Request } from './protocol.ts';
import { Store } from './store.ts';

/**
 * The writer thread: the only code that touches the database, so that no fsync ever stops the event loop.
 * It answers requests in the order they came.
 */
const port = parentPort;
if (port === null) throw new Error('the journal writer runs as a worker thread only');

try {
  const store = new Store(workerData as JournalOptions);
  port.postMessage({ opened: true, lastSeq: store.lastSeq } satisfies Opened);
  port.on('message', (request: Request) => {
    const reply = answer(store, request);
    port.postMessage(reply, transferable(reply));
    if (request.op === 'close') port.close();
  });
} catch (error) {
  const code = error instanceof MillraceError ? error.code : 'journal_unreadable';
  port.postMessage({
    opened: false,
    code: code as Extract<Opened, { opened: false }>['code'],
    detail: error instanceof MillraceError ? error.detail : messageOf(error),
  } satisfies Opened);
}

function transferable(reply: Reply): ArrayBuffer[] {
  if (!reply.ok || typeof reply.value !== 'object' || reply.value === null) return [];
  const { bodies } = reply.value as { bodies?: Uint8Array<ArrayBuffer> };
  return bodies === undefined ? [] : [bodies.buffer];
}
