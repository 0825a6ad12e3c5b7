import type { Event, JournalEvent } from './event.ts';
import type { IngestStore, InvalidReason } from './ingest.ts';
import type { ReceiptAccount, SetAsideEntry, SetAsideKind } from './receipt.ts';
import type { Redaction, Route } from './route.ts';
import type { SinkTrouble } from './sink.ts';
import type { SearchQuery } from './search.ts';
import type { RouteRecord } from './route-record.ts';
import type { CheckpointStore } from './source.ts';

/** An authentic event that is invalid, whole. */
export interface QuarantinedEvent extends Event {
  readonly key: number;
  readonly reasons: readonly InvalidReason[];
  /** Size of the body, where it was left out. */
  readonly bodyBytes?: number;
}

/** An event that a sink has refused permanently, whole. */
export interface DeadLetter {
  readonly key: number;
  readonly sink: string;
  readonly destination: string | null;
  readonly code: string;
  readonly reason: string;
  readonly attempts: number;
  /** Milliseconds since the epoch when it was given up. */
  readonly diedAt: number;
  readonly event: JournalEvent;
  /** Size of the body, where it was left out. */
  readonly bodyBytes?: number;
}

export interface CursorStatus {
  readonly sink: string;
  /** Everything up to and including this seq is settled. */
  readonly seq: number;
  /** Events after the cursor. `status` of the operations tells those that wait for the sink, as far as they are counted. */
  readonly backlog: number;
  readonly backlogBytes: number;
  /** Age of the oldest event after the cursor, milliseconds; 0 when there is none. */
  readonly backlogAge: number;
}

export interface JournalStatus {
  readonly path: string;
  readonly events: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Bytes in use on disk, free pages not counted. */
  readonly bytes: number;
  readonly maxBytes: number;
  readonly quarantined: number;
  readonly deadLetters: number;
  /** Records found not to be what was written. */
  readonly damaged: number;
  readonly cursors: readonly CursorStatus[];
  /** Why nothing can be accepted; left out where that cannot be. */
  readonly troubles?: readonly SinkTrouble[];
}

/** What a reconciliation needs of an event: whose it is, it does not say. */
export interface EventHead extends Pick<JournalEvent, 'seq' | 'id' | 'type' | 'receivedAt'> {
  /** The targets it is for, whatever the routes say; null where they decide. */
  readonly only: readonly string[] | null;
  /** Sent again by a replay. */
  readonly replayed: boolean;
  /** Its content was erased. */
  readonly erased: boolean;
  /** Of a log whose sinks do not stand at one seq each: the sinks that have not had it. */
  readonly waits?: readonly string[];
  /** Whether it can be a retry of another event; missing: if `only` is set. */
  readonly mayBeRetry?: boolean;
}

/**
 * What became of an event when it came in, and later. Every delivery is one of `accepted`, `duplicates`, `quarantined`,
 * and `erased`: dropped, because the data of its user had been erased before it came. `released`: let out of quarantine.
 * `replayed`: sent again from the archive or the journal.
 */
export type CountKind = 'accepted' | 'duplicates' | 'quarantined' | 'released' | 'replayed' | 'erased';

export interface HourCount {
  /** Beginning of the hour of receipt, milliseconds since the epoch. */
  readonly hour: number;
  readonly kind: CountKind;
  readonly n: number;
}

/** Dead letters and quarantined events that a person dropped. */
export interface DroppedEvents {
  /** Key of `hashedId`. */
  readonly key: string;
  /** `id` is the `hashedId`; `sink` is empty for those of the quarantine. */
  readonly events: readonly { readonly id: string; readonly sink: string }[];
}

/** What the journal can say of a span of time, all of one moment. */
export interface JournalAccount {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly cursors: readonly (readonly [sink: string, seq: number])[];
  readonly counts: readonly HourCount[];
  /** The first hour ever counted; null when nothing was. */
  readonly countedSince: number | null;
  /** Where each sink began: what came before is not for it. */
  readonly started: readonly (readonly [sink: string, seq: number])[];
  /** What a person dropped; null for nothing. */
  readonly dropped: DroppedEvents | null;
  /** A sink for each event that was erased before it came there, and of which nothing is left; left out where none is noted. */
  readonly erasedAlone?: readonly string[];
  /** Where each event was to go. */
  readonly routes: RouteRecord;
  /** The log of receipts that the events were entered in; left out where there was none. */
  readonly receipts?: ReceiptAccount;
  /** Not every seq is an event. */
  readonly isSparse?: boolean;
  /** What limits the account, in words. */
  readonly notes?: readonly string[];
  /** What was found damaged or gone since the account begins; left out where nothing was. */
  readonly damaged?: readonly DamageReport[];
}

/** What of a journal was found damaged or gone. */
export interface DamageReport {
  readonly what: string;
  /** Events that are lost; 0 where all of it was mended. */
  readonly n: number;
  readonly detail: string;
  /** How many of them each sink had not had. */
  readonly waiting: Readonly<Record<string, number>>;
}

/** Selects quarantined events or dead letters; absent fields select all. */
export interface Selection {
  readonly keys?: readonly number[];
  /** A delivery id. */
  readonly id?: string;
  readonly sink?: string;
  readonly limit?: number;
  /** Only keys above this one, for paging. */
  readonly after?: number;
}

/** Also by what a person looks for. */
export interface SetAsideSelection extends Selection {
  /** Those that are meant, newest first; `before` and `after` are keys. */
  readonly newestOf?: SearchQuery;
}

/** The routes events are accepted under, kept with the events. */
export interface RouteKeeper {
  /** What is appended after this has been answered goes by these routes; what was before, by those before. */
  acceptUnder(routes: readonly Route[]): Promise<RouteRecord>;
}

/** What waits for one sink becomes dead letters. */
export interface DeadLetterBatch {
  readonly sink: string;
  /** Where its cursor goes. */
  readonly upTo: number;
  readonly deadLetters: readonly (Pick<DeadLetter, 'destination' | 'code' | 'reason' | 'diedAt'> & {
    readonly seq: number;
    /** What the event has to go without there. */
    readonly redactions?: readonly Redaction[];
  })[];
}

/** What is known of a sink's deliveries ahead of its cursor. */
export interface Ahead {
  /** As the feed noted it with its last move; null for nothing. */
  readonly note: string | null;
  /** Those that became dead letters, whatever became of these. */
  readonly died: readonly (readonly [destination: string | null, seq: number])[];
}

/** Events that wait for sinks, in the order of their seqs: what a feed reads. */
export interface EventLog {
  readonly lastSeq: number;
  /** Events after `seq` in order; at least one if there is one, then as many as the limits allow. */
  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]>;
  /** Calls back after each commit, with the newest seq; the returned function stops that. */
  subscribe(listener: (lastSeq: number) => void): () => void;
  /** The cursor of the sink. A sink never seen before starts at the end. */
  openCursor(sink: string): Promise<number>;
  /**
   * The sink is gone and holds nothing back any more. Its cursor is kept for when it comes back.
   * @param forget when the sink could not be opened: a cursor that was created for this attempt is removed
   */
  releaseCursor(sink: string, forget?: boolean): void;
  /**
   * Remembers that all up to `seq` is settled; written soon, and by `flush` at the latest.
   * @param note says what is settled ahead of it; asked when it is written
   */
  moveCursor(sink: string, seq: number, note?: () => string | null): void;
  flush(): Promise<void>;
  addDeadLetter(deadLetter: Omit<DeadLetter, 'key'>): Promise<void>;
}

/** A log that accounts for each event later, and remembers what is settled ahead of a cursor. */
export interface KeptLog extends EventLog {
  ahead(sink: string): Promise<Ahead>;
  /** An event of an erased user is not sent to a sink that it was for. */
  passedOver(sink: string, event: JournalEvent): void;
}

/** A log that is notified of each delivery, because its cursors do not say enough. */
export interface ConfirmedLog extends EventLog {
  /** A sink has confirmed one delivery of the event. */
  delivered(sink: string, event: Pick<JournalEvent, 'seq'>, destination: string | null): void;
}

/**
 * One sink's log, of events that other processes deliver as well. Each event can be read once, its seq is a number of this
 * process, and it may be sent only while no other process can have it.
 */
export interface LeasedLog extends ConfirmedLog {
  /** Whether an event that was read may still be sent; asked right before. */
  maySend(event: Pick<JournalEvent, 'seq'>): boolean;
  /** Resolves when few confirmed deliveries have still to be committed: after a crash these are sent again. */
  untilCommitted(): Promise<void>;
  /** Calls back when this process receives an event; the returned function stops that. */
  onReceived(listener: () => void): () => void;
}

export type FeedLog = EventLog | KeptLog | ConfirmedLog | LeasedLog;

/** What stands between receiving and delivering: the journal, or with `acknowledge: delivered` memory. */
export interface EventStore extends RouteKeeper, IngestStore {
  /** 0 where each sink's log counts for itself. */
  readonly lastSeq: number;
  /** For sources: how far they have read. */
  readonly checkpoints: CheckpointStore;
  logOf(sink: string): FeedLog;
  /** Resolves when everything handed in before has been answered, and `lastSeq` says so. */
  settled(): Promise<void>;
  flush(): Promise<void>;
  status(): Promise<JournalStatus>;
  close(): Promise<void>;
}

/**
 * The durable local store. What `accept` or `quarantine` has answered for is on disk (fsync).
 * Rejections carry a MillraceError: `journal_full` (recovers by itself) or `journal_failed` (the process must end).
 */
export interface Journal extends EventStore, KeptLog {
  /** As the status has them, from what is in memory. */
  troubles(): readonly SinkTrouble[];
  routes(): Promise<RouteRecord>;
  /** How far each sink is that events can wait for, whether it is open or not. */
  cursors(): Promise<readonly (readonly [sink: string, seq: number])[]>;
  /** Sink `to`, which is new, continues for `from`: it has its cursor, its dead letters, and what was accepted for it. */
  succeed(from: string, to: string): Promise<RouteRecord>;
  /** Nothing waits for the sink and nothing is routed to it: it holds back nothing any more. */
  leave(sink: string): Promise<RouteRecord>;
  /** Makes dead letters of what waits for a sink. Returns how many. */
  addDeadLetters(batch: DeadLetterBatch): Promise<number>;
  /**
   * A page: as many as `limit` asks for and an answer should hold, none at the end.
   * @param bodies false leaves the bodies on disk
   */
  listDeadLetters(selection: SetAsideSelection, bodies?: boolean): Promise<readonly DeadLetter[]>;
  /** Puts them back for the sink that refused them; returns how many. Those of erased users are removed and not counted. */
  retryDeadLetters(selection: Selection): Promise<number>;
  dropDeadLetters(selection: Selection): Promise<number>;
  /** A page, as of dead letters. */
  listQuarantine(selection: SetAsideSelection, bodies?: boolean): Promise<readonly QuarantinedEvent[]>;
  /** Moves one event out of quarantine into the journal proper. @returns false when it is not there any more, or of who was erased */
  release(key: number, event: Event): Promise<boolean>;
  dropQuarantine(selection: Selection): Promise<number>;
  /** What the log of receipts has of them, a page as of dead letters, by `keys` or `after`. */
  listEntries(kind: SetAsideKind, selection: Selection): Promise<readonly SetAsideEntry[]>;
  /** Heads of the events after `seq` in order, as many as an answer should hold; none at the end. */
  heads(after: number): Promise<readonly EventHead[]>;
  /** @param since and `until`: milliseconds since the epoch; counts are of whole hours */
  account(since: number, until: number): Promise<JournalAccount>;
}
