import { parentPort, workerData } from 'node:worker_threads';
import { MillraceError, messageOf } from '../core/errors.ts';
import { sqliteCode } from './database.ts';
import type { Answers, JournalOptions, Opened, Reply, Request } from './protocol.ts';
import { Store } from './store.ts';

/**
 * The writer thread: the only code that touches the database, so that no fsync ever stops the event loop.
 * It answers requests in the order they came.
 */
const port = parentPort;
if (port === null) throw new Error('the journal writer runs as a worker thread only');

let store: Store;
try {
  store = new Store(workerData as JournalOptions);
  port.postMessage({ opened: true, lastSeq: store.lastSeq } satisfies Opened);
  port.on('message', (request: Request) => {
    const reply = answer(request);
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

/** Operations after which the file is what it was before: an error of theirs is no reason to stop receiving. */
const READS: ReadonlySet<Request['op']> = new Set([
  'read',
  'loadCheckpoint',
  'status',
  'listDeadLetters',
  'listQuarantine',
  'heads',
  'account',
  'erasedCounts',
]);

function answer(request: Request): Reply {
  try {
    return { ok: true, value: perform(request) };
  } catch (error) {
    // A full disk is a state that passes. Everything else SQLite reports while writing means that what is on disk is
    // no longer known: the process has to end and recover from what was committed.
    const full =
      sqliteCode(error) === 'SQLITE_FULL' ||
      (error instanceof MillraceError && error.code === 'journal_full');
    // A bad page that cannot be cleared away lies there; what comes after it is not in danger.
    const reading =
      READS.has(request.op) || (request.op === 'maintain' && sqliteCode(error).startsWith('SQLITE_CORRUPT'));
    const detail = error instanceof MillraceError ? error.detail : `${sqliteCode(error)} ${messageOf(error)}`;
    return {
      ok: false,
      code: full ? 'journal_full' : reading ? 'journal_unreadable' : 'journal_failed',
      detail,
    };
  }
}

function perform(request: Request): Answers[Request['op']] {
  switch (request.op) {
    case 'append':
      return store.append(request);
    case 'read':
      return store.read(request.after, request, request.now);
    case 'openCursor':
      return store.openCursor(request.sink);
    case 'releaseCursor':
      store.cursors.release(request.sink, request.forget);
      return null;
    case 'moveCursors':
      store.cursors.move(request.cursors);
      return null;
    case 'loadCheckpoint':
      return store.loadCheckpoint(request.key);
    case 'saveCheckpoint':
      store.saveCheckpoint(request.key, request.value);
      return null;
    case 'status':
      return store.status(request.now);
    case 'addDeadLetter':
      store.letters.add(request.letter, request.event);
      return null;
    case 'listDeadLetters':
      return store.letters.list(request.selection);
    case 'retryDeadLetters':
      return store.retryDeadLetters(request.selection);
    case 'dropDeadLetters':
      return store.letters.drop('dead_letters', request.selection);
    case 'listQuarantine':
      return store.letters.listQuarantine(request.selection);
    case 'release':
      return store.release(request.key, request.event);
    case 'dropQuarantine':
      return store.letters.drop('quarantine', request.selection);
    case 'erase':
      return store.eraser.perform(request.subjects, request.step);
    case 'countErased':
      store.countErased(request.receivedAt);
      return null;
    case 'erasedCounts':
      return store.eraser.counts(request.request);
    case 'heads':
      return store.heads(request.after);
    case 'account':
      return store.account(request.since, request.until);
    case 'maintain':
      return store.maintain(request.now);
    case 'close':
      store.close();
      return null;
    default:
      return request satisfies never;
  }
}

function transferable(reply: Reply): ArrayBuffer[] {
  if (!reply.ok || typeof reply.value !== 'object' || reply.value === null) return [];
  const { bodies } = reply.value as { bodies?: Uint8Array<ArrayBuffer> };
  return bodies === undefined ? [] : [bodies.buffer];
}
