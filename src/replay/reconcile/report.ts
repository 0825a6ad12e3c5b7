/** The deliveries of a window and what became of them at one sink. `received` is the sum of all counts after it. */
export interface SinkAccount {
  readonly sink: string;
  readonly type: string;
  /** `files`: its records were read. `journal`: it has no files, so the journal's confirmations count. */
  readonly counted_from: 'files' | 'journal';
  readonly received: number;
  readonly duplicates: number;
  /** Invalid, or damaged in the journal; they wait for a person. */
  readonly quarantined: number;
  readonly delivered: number;
  readonly waiting: number;
  readonly dead: number;
  /** Dead letters that a person dropped. */
  readonly dropped: number;
  readonly erased: number;
  /** Not for this sink, by the routes they were accepted under. */
  readonly elsewhere: number;
  /** Past the journal's retention: whether they were for this sink is unknown. */
  readonly untold: number;
  readonly missing: number;
  /** Further records of an event, as after a replay; not counted above. */
  readonly copies: number;
  /** Records that stay sealed. */
  readonly sealed: number;
}

/**
 * `damaged`: the journal was damaged. `abandoned`: events wait for a sink that is not configured. `unplaced`: the counts
 * of a sink do not add up. `log`: the log of receipts and the journal do not match.
 */
export type DifferenceCode =
  | 'missing'
  | 'lost'
  | 'not_received'
  | 'unreadable'
  | 'damaged'
  | 'journal_gap'
  | 'abandoned'
  | 'unplaced'
  | 'log';

/** The head of the log of receipts before the journal was counted. */
export interface LogAccount {
  readonly origin: string;
  readonly size: number;
  /** Base64. */
  readonly root: string;
  /** Events of the journal that the log did not have yet. */
  readonly waiting: number;
}

export interface Difference {
  readonly code: DifferenceCode;
  /** Null for a difference of the journal. */
  readonly sink: string | null;
  readonly count: number;
  /** The first ones, if known. */
  readonly ids: readonly string[];
  readonly detail: string;
}

export interface ReconcileReport {
  /** ISO 8601, whole hours; `until` is not part of it. */
  readonly since: string;
  readonly until: string;
  readonly sinks: readonly SinkAccount[];
  /** Events that the routes they were accepted under led to no sink. */
  readonly nowhere: number;
  /** Null without receipts, or with a difference that says why. */
  readonly log: LogAccount | null;
  readonly differences: readonly Difference[];
  /** What limits the answer, in words. */
  readonly notes: readonly string[];
}

/** Most ids or problems named for each difference. */
export const NAMED = 20;
