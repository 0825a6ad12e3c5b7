import type { Subject } from '../core/erasure.ts';
import type { DeadLetter, EventHead, JournalAccount, JournalStatus, Selection } from '../core/journal.ts';
import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { Route } from '../core/route.ts';
import type { RouteRecord } from '../core/route-record.ts';
import type { EraseStep, ErasedCounts } from './erase.ts';

/**
 * What crosses between the process and its writer thread. Bodies of a batch travel as one transferred buffer and the
 * rest as flat tuples: cloning an object an event costs more than the insert it is for.
 */
export type EventRow = readonly [
  id: string,
  source: string,
  type: string,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  receivedAt: number,
  headers: string,
  handling: string | null,
  bodyLength: number,
];

/** Events whose bodies stand one after the other in `bodies`. */
export interface Packed {
  readonly rows: readonly EventRow[];
  readonly bodies: Uint8Array;
}

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

/** `append` entries: what to do with each packed event besides storing it. */
export interface AppendRequest extends Packed {
  readonly op: 'append';
  /** Reasons as JSON for an event that goes to quarantine; null for one that goes to the journal proper. */
  readonly unfit: readonly (string | null)[];
  /** What stands for the id within the source; null for the event's id. */
  readonly keys: readonly (string | null)[];
  readonly now: number;
}

/** Dead letters to be made of events that wait for a sink, and how far its cursor goes by that. */
export interface BuryRequest {
  readonly op: 'bury';
  readonly sink: string;
  readonly upTo: number;
  readonly letters: readonly Omit<LetterRow, 'sink' | 'attempts'>[];
}

export type Request =
  | AppendRequest
  | BuryRequest
  | { readonly op: 'routes' }
  | { readonly op: 'acceptUnder'; readonly routes: readonly Route[] }
  | { readonly op: 'succeed'; readonly from: string; readonly to: string }
  | { readonly op: 'leave'; readonly sink: string }
  | { readonly op: 'cursors' }
  | {
      readonly op: 'read';
      readonly after: number;
      readonly count: number;
      readonly bytes: number;
      readonly now: number;
    }
  | { readonly op: 'openCursor'; readonly sink: string; readonly now: number }
  | { readonly op: 'releaseCursor'; readonly sink: string; readonly forget: boolean }
  | {
      readonly op: 'moveCursors';
      readonly cursors: readonly (readonly [string, number])[];
      readonly now: number;
    }
  | { readonly op: 'loadCheckpoint'; readonly key: string }
  | { readonly op: 'saveCheckpoint'; readonly key: string; readonly value: string }
  | { readonly op: 'status'; readonly now: number }
  | { readonly op: 'addDeadLetter'; readonly letter: LetterRow; readonly event: Packed }
  | { readonly op: 'listDeadLetters'; readonly selection: Selection; readonly whole: boolean }
  | { readonly op: 'retryDeadLetters'; readonly selection: Selection }
  | { readonly op: 'dropDeadLetters'; readonly selection: Selection }
  | { readonly op: 'listQuarantine'; readonly selection: Selection; readonly whole: boolean }
  | { readonly op: 'release'; readonly key: number; readonly event: Packed }
  | { readonly op: 'dropQuarantine'; readonly selection: Selection }
  | { readonly op: 'erase'; readonly subjects: readonly Subject[]; readonly step: EraseStep }
  | { readonly op: 'erasedCounts'; readonly request: string }
  /** Milliseconds since the epoch at which each came. */
  | { readonly op: 'countErased'; readonly receivedAt: readonly number[] }
  | { readonly op: 'heads'; readonly after: number }
  | { readonly op: 'account'; readonly since: number; readonly until: number }
  | { readonly op: 'maintain'; readonly now: number }
  | { readonly op: 'close' };

export type LetterRow = Pick<
  DeadLetter,
  'sink' | 'destination' | 'code' | 'reason' | 'attempts' | 'diedAt'
> & {
  readonly seq: number;
};

/** Of each letter its key and, where bodies were left out, the body's size. */
interface LetterPage {
  readonly keys: readonly number[];
  readonly bodyBytes: readonly number[] | null;
}

/** Answers by operation. `append`: a seq, 0 for a duplicate, -1 for one in quarantine, -2 for one there by its id. */
export interface Answers {
  append: readonly number[];
  /** `damaged`: records that were found so by this read, for the first time. */
  read: Packed & {
    readonly seqs: readonly number[];
    readonly damaged: readonly { readonly seq: number; readonly id: string | null }[];
  };
  bury: number;
  routes: RouteRecord;
  acceptUnder: RouteRecord;
  succeed: RouteRecord;
  leave: RouteRecord;
  cursors: readonly (readonly [sink: string, seq: number])[];
  openCursor: number;
  releaseCursor: null;
  moveCursors: null;
  loadCheckpoint: string | null;
  saveCheckpoint: null;
  status: JournalStatus;
  addDeadLetter: null;
  listDeadLetters: Packed & LetterPage & { readonly letters: readonly LetterRow[] };
  retryDeadLetters: { readonly count: number; readonly lastSeq: number };
  dropDeadLetters: number;
  listQuarantine: Packed & LetterPage & { readonly unfit: readonly string[] };
  release: number;
  dropQuarantine: number;
  heads: readonly EventHead[];
  account: JournalAccount;
  /** The step that follows; null after the last. */
  erase: EraseStep | null;
  erasedCounts: ErasedCounts;
  countErased: null;
  /** True while there is more to clear away. */
  maintain: boolean;
  close: null;
}

export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly code: 'journal_full' | 'journal_failed' | 'journal_unreadable';
      readonly detail: string;
    };

/** The writer thread's first message. */
export type Opened =
  | { readonly opened: true; readonly lastSeq: number }
  | {
      readonly opened: false;
      readonly code: 'journal_in_use' | 'journal_unreadable' | 'journal_missing' | 'folder_unwritable';
      readonly detail: string;
    };

export function pack(
  events: readonly { readonly event: Event; readonly handling?: Handling | undefined }[],
): Packed {
  let size = 0;
  for (const { event } of events) size += event.body.length;
  // A buffer of its own, never a slice of Node's pool: it is transferred, and the pool must not go with it.
  const bodies = new Uint8Array(size);
  const rows: EventRow[] = [];
  let at = 0;
  for (const { event, handling } of events) {
    bodies.set(event.body, at);
    at += event.body.length;
    rows.push([
      event.id,
      event.source,
      event.type,
      event.team,
      event.user,
      event.clientUser,
      event.receivedAt,
      JSON.stringify(event.headers),
      handling === undefined || Object.keys(handling).length === 0 ? null : JSON.stringify(handling),
      event.body.length,
    ]);
  }
  return { rows, bodies };
}

/** Bodies come back as views into the one buffer they travelled in. */
export function unpack(packed: Packed, seqs: readonly number[]): JournalEvent[] {
  const all = Buffer.from(packed.bodies.buffer, packed.bodies.byteOffset, packed.bodies.byteLength);
  let at = 0;
  return packed.rows.map((row, index) => {
    const body = all.subarray(at, at + row[9]);
    at += row[9];
    return {
      seq: seqs[index] ?? 0,
      id: row[0],
      source: row[1],
      type: row[2],
      team: row[3],
      user: row[4],
      clientUser: row[5],
      receivedAt: row[6],
      headers: JSON.parse(row[7]) as Record<string, string>,
      handling: row[8] === null ? NO_HANDLING : (JSON.parse(row[8]) as Handling),
      body,
    };
  });
}

export const NO_HANDLING: Handling = Object.freeze({});
