import { parentPort, workerData } from 'node:worker_threads';
import { MillraceError, messageOf } from '../core/errors.ts';
import { transferable, type Call } from '../lib/remote.ts';
import type { JournalOptions } from './database.ts';
import { answer, type Opened } from './perform.ts';
import { Store } from './store.ts';

/**
 * The writer thread: the only code that touches the database, so that no fsync stops the event loop. It answers calls in their
 * order.
 */
const port = parentPort;
if (port === null) throw new Error('the journal writer runs as a worker thread only');

try {
  const store = new Store(workerData as JournalOptions);
  port.postMessage({ opened: true, lastSeq: store.lastSeq, repairs: store.repairs } satisfies Opened);
  port.on('message', (call: Call) => {
    const reply = answer(store, call);
    port.postMessage(reply, reply.ok ? transferable([reply.value]) : []);
    if (call.op === 'close') port.close();
  });
} catch (error) {
  const { code, detail } =
    error instanceof MillraceError
      ? error
      : { code: 'journal_unreadable' as const, detail: messageOf(error) };
  port.postMessage({ opened: false, code, detail } satisfies Opened);
}
