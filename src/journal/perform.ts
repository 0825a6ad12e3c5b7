import { MillraceError, messageOf } from '../core/errors.ts';
import { perform, type Call, type Operation } from '../lib/remote.ts';
import { sqliteCode } from './sqlite-errors.ts';
import type { Reply } from './protocol.ts';
import type { Store } from './store.ts';

/** Operations after which the file is what it was before: an error of theirs is no reason to stop receiving. */
const READS: ReadonlySet<string> = new Set<Operation<Store>>([
  'read',
  'checkpoints.load',
  'routes.read',
  'cursors.known',
  'cursors.ahead',
  'status',
  'setAside.list',
  'setAside.listQuarantine',
  'heads',
  'account',
  'asideEntries.list',
  'receipts.entries',
  'receipts.log',
  'receipts.upTo',
  'space.shortage',
  'eraser.counts',
]);

/** Carries out one call; never throws. */
export function answer(store: Store, call: Call): Reply {
  try {
    if (!READS.has(call.op) && call.op !== 'close') store.prepare();
    return { ok: true, value: perform(store, call) };
  } catch (error) {
    // A full disk is a state that passes. Everything else that goes wrong while writing means that what is on disk is no
    // longer known: the process has to end and recover from what was committed.
    const full =
      sqliteCode(error) === 'SQLITE_FULL' ||
      (error instanceof MillraceError && error.code === 'journal_full');
    // A bad page that cannot be cleared away lies there; what comes after it is not in danger.
    const reading =
      READS.has(call.op) || (call.op === 'maintain' && sqliteCode(error).startsWith('SQLITE_CORRUPT'));
    const detail = error instanceof MillraceError ? error.detail : `${sqliteCode(error)} ${messageOf(error)}`;
    return {
      ok: false,
      code: full ? 'journal_full' : reading ? 'journal_unreadable' : 'journal_failed',
      detail,
    };
  }
}
