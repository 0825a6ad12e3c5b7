import type { ErrorCode } from '../core/errors.ts';

export interface JournalOptions {
  /** Folder of the journal. */
  readonly path: string;
  /** How long settled events are kept, milliseconds. */
  readonly retention: number;
  readonly maxBytes: number;
  /** How long an id is remembered, milliseconds. */
  readonly dedupWindow: number;
  /** False for commands that only look: a missing journal is then an error. */
  readonly create: boolean;
}

/** The answer to a call, in the order of the calls. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly code: 'journal_full' | 'journal_failed' | 'journal_unreadable';
      readonly detail: string;
    };

/** What the writer thread says before it has opened the journal, when it carries an older one over and that takes long. */
export interface CarryingOver {
  readonly done: number;
  /** Events. */
  readonly total: number;
}

/** Whether it has; the answers to calls follow. */
export type Opened =
  | { readonly opened: true; readonly lastSeq: number }
  | { readonly opened: false; readonly code: ErrorCode; readonly detail: string };
