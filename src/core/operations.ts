import { z } from 'zod';
import type { Redaction } from './route.ts';
import type { Flushed, SinkTrouble } from './sink.ts';
import type { InvalidReason } from './ingest.ts';
import type { SchemaReport } from './schema.ts';
import type { EventHead, JournalAccount, JournalStatus, Selection } from './journal.ts';
import type { RouteRecord } from './route-record.ts';
import type { SetAsideEntry, SetAsideKind } from './receipt.ts';

/** How one sink is doing, beside what its cursor says. */
export interface SinkStatus {
  readonly sink: string;
  readonly mode: string;
  /** Deliveries loaded and not settled, those in flight among them. */
  readonly pending: number;
  /** Deliveries that the sink has on its own disk and has not confirmed yet. */
  readonly held: number;
  readonly inFlight: number;
  /** Deliveries not confirmed, of the events up to `lookedAt`. */
  readonly waiting: number;
  /** Seq up to which it is known what the sink is to have. */
  readonly lookedAt: number;
  readonly delivered: number;
  readonly retried: number;
  readonly dead: number;
  readonly lastError: string | null;
  /** What is wrong with the sink beside that, oldest first. */
  readonly troubles: readonly SinkTrouble[];
  /** What it confirmed since its start without being able to act on it: how often, by name. */
  readonly skipped: Readonly<Record<string, number>>;
}

export interface ConnectionCounts {
  /** Connected now. */
  readonly open: number;
  /** Closed because they were idle and a new one needed their place. */
  readonly evicted: number;
  /** Closed at once because no other one was idle. */
  readonly dropped: number;
}

/** How one of `signing.secrets` is used; its place in the list is that in the config. */
export interface SecretStatus {
  readonly matches: number;
  /** Milliseconds since the epoch; null when it has not matched. */
  readonly lastUsed: number | null;
}

/** How the log of receipts is doing. */
export interface ReceiptsStatus {
  readonly origin: string;
  /** Signed so far. */
  readonly entries: number;
  /** Events that the signed log does not have yet. */
  readonly waiting: number;
  /** Since when it cannot be written, milliseconds since the epoch; null while it can. */
  readonly behindSince: number | null;
}

/** How the open endpoint is doing. */
export interface ReceivingStatus {
  /** Since the start or the last reload: milliseconds since the epoch. */
  readonly signing: { readonly since: number; readonly secrets: readonly SecretStatus[] };
  readonly connections: ConnectionCounts & { readonly max: number };
  /** Requests refused in the last hour by the code of their answer, the most frequent first. */
  readonly refused: Readonly<Record<string, number>>;
  /** Where the receiver began within that hour: since when they are counted, milliseconds since the epoch. */
  readonly refusedSince: number | null;
  /** Null where none are given. */
  readonly receipts: ReceiptsStatus | null;
}

export interface SystemStatus {
  /** Process that serves the journal; null when nothing does and it was read directly. */
  readonly pid: number | null;
  readonly journal: JournalStatus;
  /** Empty when nothing is running. */
  readonly sinks: readonly SinkStatus[];
  /** Null when nothing is running. */
  readonly receiving: ReceivingStatus | null;
  /** What keeps files of earlier configs unfinished, oldest first. */
  readonly earlier: readonly SinkTrouble[];
}

/** What a person is shown of an event: its envelope, never its body unless asked for. snake_case as in the archive. */
export interface EventSummary {
  readonly key: number;
  readonly id: string;
  readonly received_at: string;
  readonly event_type: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly client_user_id: string | null;
  readonly bytes: number;
  /** The body, base64, and what else an event consists of; only where bodies were asked for. */
  readonly body_base64?: string;
  readonly source?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of a place in the journal without an event: what became of it. */
  readonly gone?: 'erased' | 'quarantined' | 'damaged';
}

export interface QuarantineSummary extends EventSummary {
  readonly reasons: readonly InvalidReason[];
}

export interface DeadLetterSummary extends EventSummary {
  /** What the event had to go without; only where bodies were asked for. */
  readonly redactions?: readonly Redaction[];
  readonly sink: string;
  readonly destination: string | null;
  readonly code: string;
  readonly reason: string;
  readonly attempts: number;
  readonly died_at: string;
}

export interface RetryResult {
  readonly retried: number;
  /** Still invalid, or for a sink that is configured no longer; they stay. */
  readonly kept: number;
}

/** What became of what waits for a sink that a person gives up. */
export interface GivenUp {
  readonly sink: string;
  /** Dead letters made of it. */
  readonly dropped: number;
  /** Still waiting: they become dead letters when a reload takes the sink out. */
  readonly waiting: number;
}

/** What became of one sink's open files. */
export interface FlushedSink extends Flushed {
  readonly sink: string;
  /** Whether events that were accepted before the call still wait for the sink: they are in none of the files. */
  readonly waiting: boolean;
}

/**
 * What an operator can see and do, the same whether a receiver is running (through its admin API) or not (on the
 * journal itself).
 */
export interface Operations {
  status(): Promise<SystemStatus>;
  /**
   * Events of the journal after seq `selection.after`, whole and in order, their seq as `key`: as many as an answer
   * should hold, none at the journal's end.
   */
  listEvents(selection: Selection): Promise<readonly EventSummary[]>;
  /** Heads of the journal's events after seq `after`, in order, as many as an answer should hold; none at its end. */
  listHeads(after: number): Promise<readonly EventHead[]>;
  /** @param since and `until`: milliseconds since the epoch */
  account(since: number, until: number): Promise<JournalAccount>;
  listQuarantine(selection: Selection, bodies: boolean): Promise<readonly QuarantineSummary[]>;
  /** @param isNamed whether a person has named each of them; those whose id came before stay otherwise */
  retryQuarantine(selection: Selection, isNamed?: boolean): Promise<RetryResult>;
  dropQuarantine(selection: Selection): Promise<number>;
  listDeadLetters(selection: Selection, bodies: boolean): Promise<readonly DeadLetterSummary[]>;
  retryDeadLetters(selection: Selection): Promise<RetryResult>;
  dropDeadLetters(selection: Selection): Promise<number>;
  /** What the log of receipts has of what is set aside, those without an entry too: a page, none at the end. */
  listEntries(kind: SetAsideKind, selection: Selection): Promise<readonly SetAsideEntry[]>;
  /** What accepted events look like. Rejects where that is not remembered. */
  schema(): Promise<SchemaReport>;
  /** The routes that the journal remembers, those of now among them; none where it is not on this machine. */
  routes(): Promise<RouteRecord>;
  /** Gives up what waits for a sink that is not in the config any more. */
  dropSink(sink: string): Promise<GivenUp>;
}

const line = z.string().max(300);
const amount = z.number().min(0);

export const activitySchema = z.strictObject({
  kind: z.enum(['erasure', 'replay', 'backfill', 'reload', 'export']),
  /** The same for as long as the work lasts; a replay id, a request id. Never the id of a user. */
  id: line.min(1),
  /** One line for a person: from where to where. No ids of users. */
  title: line,
  state: z.enum(['waiting', 'running', 'done', 'failed', 'interrupted']),
  done: amount,
  /** Null as long as it is not known. */
  total: amount.nullable(),
  /** What `done` and `total` count: `events`, `users`, `files`. */
  unit: line,
  /** Milliseconds since the epoch. */
  startedAt: amount,
  updatedAt: amount,
  /** What went wrong, or what is being waited for. */
  detail: line.nullable(),
});

/** Work that takes a while and that an operator may want to watch: an erasure, a replay, a backfill. */
export type Activity = Readonly<z.output<typeof activitySchema>>;
