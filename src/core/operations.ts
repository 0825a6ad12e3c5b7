import type { JournalStatus, Selection, Unfitness } from './journal.ts';

/** How one sink is doing, beside what its cursor says. */
export interface SinkStatus {
  readonly sink: string;
  readonly mode: string;
  readonly pending: number;
  readonly inFlight: number;
  readonly delivered: number;
  readonly retried: number;
  readonly dead: number;
  readonly lastError: string | null;
}

export interface SystemStatus {
  /** Process that serves the journal; null when nothing does and it was read directly. */
  readonly pid: number | null;
  readonly journal: JournalStatus;
  /** Empty when nothing is running. */
  readonly sinks: readonly SinkStatus[];
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
  /** The body, base64; only where it was asked for. */
  readonly body_base64?: string;
}

export interface QuarantineSummary extends EventSummary {
  readonly reasons: readonly Unfitness[];
}

export interface DeadLetterSummary extends EventSummary {
  readonly sink: string;
  readonly destination: string | null;
  readonly code: string;
  readonly reason: string;
  readonly attempts: number;
  readonly died_at: string;
}

export interface RetryResult {
  readonly retried: number;
  /** Still unfit, or for a sink that is configured no longer; they stay. */
  readonly kept: number;
}

/**
 * What an operator can see and do, the same whether a receiver is running (through its admin API) or not (on the
 * journal itself).
 */
export interface Operations {
  status(): Promise<SystemStatus>;
  listQuarantine(selection: Selection, bodies: boolean): Promise<readonly QuarantineSummary[]>;
  retryQuarantine(selection: Selection): Promise<RetryResult>;
  dropQuarantine(selection: Selection): Promise<number>;
  listDeadLetters(selection: Selection, bodies: boolean): Promise<readonly DeadLetterSummary[]>;
  retryDeadLetters(selection: Selection): Promise<RetryResult>;
  dropDeadLetters(selection: Selection): Promise<number>;
}
