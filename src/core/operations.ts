import { z } from 'zod';
import type { Redaction } from './route.ts';
import type { Flushed, SinkTrouble } from './sink.ts';
import type { InvalidReason } from './ingest.ts';
import type { SchemaReport } from './schema.ts';
import type { DeadLetter, EventHead, JournalAccount, JournalStatus, Selection } from './journal.ts';
import type { RouteRecord } from './route-record.ts';
import type { SetAsideEntry, SetAsideKind } from './receipt.ts';
import type { EventLine } from './tail.ts';

/** Status of one sink, without its cursor. */
export interface SinkStatus {
  readonly sink: string;
  readonly mode: string;
  /** Deliveries loaded and not settled, also those in flight. */
  readonly pending: number;
  /** Deliveries that the sink has on its own disk and has not confirmed. */
  readonly held: number;
  readonly inFlight: number;
  /** Deliveries not confirmed of events up to `lookedAt`. */
  readonly waiting: number;
  /** Seq up to which events were routed for the sink. */
  readonly lookedAt: number;
  readonly delivered: number;
  readonly retried: number;
  readonly dead: number;
  readonly lastError: string | null;
  /** Oldest first. */
  readonly troubles: readonly SinkTrouble[];
  /** Events confirmed since its start without acting on them, by reason. */
  readonly skipped: Readonly<Record<string, number>>;
  /** Milliseconds at which the newest event of each table was received that it has written since its start. */
  readonly newest: Readonly<Record<string, number>>;
}

export interface ConnectionCounts {
  /** Connected now. */
  readonly open: number;
  /** Idle ones that were closed for a new one. */
  readonly evicted: number;
  /** Closed at once, because no other one was idle. */
  readonly dropped: number;
}

/** One of `signing.secrets`, in the order of the config. */
export interface SecretStatus {
  readonly matches: number;
  /** Milliseconds since the epoch; null when it never matched. */
  readonly lastUsed: number | null;
}

export interface ReceiptsStatus {
  readonly origin: string;
  /** Entries signed so far. */
  readonly entries: number;
  /** Events without an entry in the signed log. */
  readonly waiting: number;
  /** Since when the log cannot be written, milliseconds since the epoch; null while it can. */
  readonly behindSince: number | null;
}

/** Status of the open endpoint. */
export interface ReceivingStatus {
  /** Since the start or the last reload: milliseconds since the epoch. */
  readonly signing: { readonly since: number; readonly secrets: readonly SecretStatus[] };
  readonly connections: ConnectionCounts & { readonly max: number };
  /** Requests refused in the last hour, by the code of their answer, the most frequent first. */
  readonly refused: Readonly<Record<string, number>>;
  /** When the receiver started, if within that hour: milliseconds since the epoch. */
  readonly refusedSince: number | null;
  /** When the last one was refused, in milliseconds since the epoch; null when none was since the start. */
  readonly refusedLast: number | null;
  /** Null when receipts are off. */
  readonly receipts: ReceiptsStatus | null;
}

export interface SystemStatus {
  /** Process that owns the journal; null when none runs and the journal was read directly. */
  readonly pid: number | null;
  readonly journal: JournalStatus;
  /** Empty when nothing is running. */
  readonly sinks: readonly SinkStatus[];
  /** Null when nothing is running. */
  readonly receiving: ReceivingStatus | null;
  /** Why files of earlier configs are not closed, oldest first. */
  readonly earlier: readonly SinkTrouble[];
}

/** An event as a person sees it, without its body unless asked for. Keys as in the archive. */
export interface EventSummary extends Omit<EventLine, 'source'> {
  readonly key: number;
  readonly received_at: string;
  /** Base64; these three only where bodies were asked for. */
  readonly body_base64?: string;
  readonly source?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Why there is no event at this seq any more. */
  readonly gone?: 'erased' | 'quarantined' | 'damaged';
}

export interface QuarantineSummary extends EventSummary {
  readonly reasons: readonly InvalidReason[];
}

export interface DeadLetterSummary
  extends EventSummary, Pick<DeadLetter, 'sink' | 'destination' | 'code' | 'reason' | 'attempts'> {
  /** Only where bodies were asked for. */
  readonly redactions?: readonly Redaction[];
  readonly died_at: string;
}

export interface RetryResult {
  readonly retried: number;
  /** Not retried: still invalid, or their sink is no longer configured. */
  readonly kept: number;
}

/** Result of giving up a sink. */
export interface GivenUp {
  readonly sink: string;
  /** Dead letters made. */
  readonly dropped: number;
  /** Events that become dead letters when a reload removes the sink. */
  readonly waiting: number;
}

/** Result of flushing one sink. */
export interface FlushedSink extends Flushed {
  readonly sink: string;
  /** Whether events accepted before the call still wait for the sink, and are in none of the files. */
  readonly waiting: boolean;
}

/** What an operator can see and do: through the admin API of a running receiver, or on the journal itself. */
export interface Operations {
  status(): Promise<SystemStatus>;
  /** A page of events after seq `selection.after`, whole and in order, with their seq as `key`; empty at the end. */
  listEvents(selection: Selection): Promise<readonly EventSummary[]>;
  /** A page of heads of the events after seq `after`, in order; empty at the end. */
  listHeads(after: number): Promise<readonly EventHead[]>;
  /** @param since and `until`: milliseconds since the epoch */
  account(since: number, until: number): Promise<JournalAccount>;
  listQuarantine(selection: Selection, bodies: boolean): Promise<readonly QuarantineSummary[]>;
  /** @param isNamed whether a person has named each event; otherwise those with a known id are kept */
  retryQuarantine(selection: Selection, isNamed?: boolean): Promise<RetryResult>;
  dropQuarantine(selection: Selection): Promise<number>;
  listDeadLetters(selection: Selection, bodies: boolean): Promise<readonly DeadLetterSummary[]>;
  retryDeadLetters(selection: Selection): Promise<RetryResult>;
  dropDeadLetters(selection: Selection): Promise<number>;
  /** A page of entries of the log of receipts for quarantined events or dead letters; empty at the end. */
  listEntries(kind: SetAsideKind, selection: Selection): Promise<readonly SetAsideEntry[]>;
  /** Rejects where schemas are not remembered. */
  schema(): Promise<SchemaReport>;
  /** All routes that the journal remembers; none where it is not on this machine. */
  routes(): Promise<RouteRecord>;
  /** Makes dead letters of what waits for a sink that is removed. */
  dropSink(sink: string): Promise<GivenUp>;
}

const line = z.string().max(300);
const amount = z.number().min(0);

export const activitySchema = z.strictObject({
  kind: z.enum(['erasure', 'replay', 'backfill', 'reload', 'export']),
  /** Of a replay or a request; never the id of a user. */
  id: line.min(1),
  /** One line for a person: from where to where. No ids of users. */
  title: line,
  state: z.enum(['waiting', 'running', 'done', 'failed', 'interrupted']),
  done: amount,
  /** Null while unknown. */
  total: amount.nullable(),
  /** What `done` and `total` count: `events`, `users`, `files`. */
  unit: line,
  /** Milliseconds since the epoch. */
  startedAt: amount,
  updatedAt: amount,
  /** An error, or what the work waits for. */
  detail: line.nullable(),
});

/** Long work that an operator may watch: an erasure, a replay, a backfill. */
export type Activity = Readonly<z.output<typeof activitySchema>>;
