import type { ErrorCode } from '../core/errors.ts';
import type { Recovery, Repair } from './mend.ts';

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
  /** What a person decided where nothing says how far the sinks are. */
  readonly recovery?: Recovery | undefined;
}

/** The answer to a call, in the order of the calls. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly code: 'journal_full' | 'journal_failed' | 'journal_unreadable';
      readonly detail: string;
    };

/** Whether it has; the answers to calls follow. */
export type Opened =
  | { readonly opened: true; readonly lastSeq: number; readonly repairs: readonly Repair[] }
  | { readonly opened: false; readonly code: ErrorCode; readonly detail: string };
