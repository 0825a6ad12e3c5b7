import { MillraceError, messageOf } from '../core/errors.ts';
import { sqliteCode } from './database.ts';
import type { Answers, Reply, Request } from './protocol.ts';
import type { Store } from './store.ts';

/** Operations after which the file is what it was before: an error of theirs is no reason to stop receiving. */
const READS: ReadonlySet<Request['op']> = new Set([
  'read',
  'loadCheckpoint',
  'routes',
  'cursors',
  'status',
  'listDeadLetters',
  'listQuarantine',
  'heads',
  'account',
  'erasedCounts',
]);

/** Carries out one request; never throws. */
export function answer(store: Store, request: Request): Reply {
  try {
    return { ok: true, value: perform(store, request) };
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

function perform(store: Store, request: Request): Answers[Request['op']] {
  switch (request.op) {
    case 'append':
      return store.append(request);
    case 'read':
      return store.read(request.after, request, request.now);
    case 'routes':
      return store.routes.record;
    case 'acceptUnder':
      return store.acceptUnder(request.routes);
    case 'succeed':
      return store.cursors.succeed(request.from, request.to);
    case 'leave':
      return store.cursors.leave(request.sink);
    case 'cursors':
      return store.cursors.known;
    case 'bury':
      return store.bury(request);
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
      return store.letters.list(request.selection, request.whole);
    case 'retryDeadLetters':
      return store.retryDeadLetters(request.selection);
    case 'dropDeadLetters':
      return store.letters.drop('dead_letters', request.selection);
    case 'listQuarantine':
      return store.letters.listQuarantine(request.selection, request.whole);
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
