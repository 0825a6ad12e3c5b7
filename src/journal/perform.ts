import { MillraceError, messageOf, type ErrorCode } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';
import { perform, type Call, type Operation } from '../lib/remote.ts';
import type { Repair } from './mend.ts';
import { isDiskFull } from './sqlite-errors.ts';
import type { Store } from './store.ts';

/** First message of the writer thread. */
export type Opened =
  | { readonly opened: true; readonly lastSeq: number; readonly repairs: readonly Repair[] }
  | { readonly opened: false; readonly code: ErrorCode; readonly detail: string };

/** Then one for each call, in the order of the calls. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly code: 'journal_full' | 'journal_failed' | 'journal_unreadable';
      readonly detail: string;
    };

/** Operations that change no file: after their errors the journal can still receive. */
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
  'eraser.entries',
  'eraser.firstStepAfterForgetting',
]);

/** Performs one call; never throws. */
export function answer(store: Store, call: Call): Reply {
  try {
    if (!READS.has(call.op) && call.op !== 'close') store.prepare();
    return { ok: true, value: perform(store, call) };
  } catch (error) {
    const detail = error instanceof MillraceError ? error.detail : `${errorCode(error)} ${messageOf(error)}`;
    return { ok: false, code: codeOf(error, call.op), detail };
  }
}

function codeOf(error: unknown, op: string): Extract<Reply, { ok: false }>['code'] {
  if (isDiskFull(error)) return 'journal_full';
  // A damaged page that cannot be cleared is no danger to what is written after it.
  const isClearing = op === 'maintain' && errorCode(error).startsWith('SQLITE_CORRUPT');
  // After any other failed write the content of the files is unknown: the process must end and recover what was committed.
  return READS.has(op) || isClearing ? 'journal_unreadable' : 'journal_failed';
}
