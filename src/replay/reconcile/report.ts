/**
 * What came in during a window, and where it is, for one sink. `received` is the sum of all that follow it, `missing`
 * included.
 */
export interface SinkAccount {
  readonly sink: string;
  readonly type: string;
  /** `files`: its records were read. `journal`: nobody can be asked, so what the journal says was confirmed counts. */
  readonly counted_from: 'files' | 'journal';
  readonly received: number;
  readonly duplicates: number;
  /** Not fit to route, or damaged in the journal; they wait for a person. */
  readonly quarantined: number;
  readonly delivered: number;
  readonly waiting: number;
  readonly dead: number;
  /** Dead letters that a person dropped. */
  readonly dropped: number;
  readonly erased: number;
  /** Not for this sink, by the routes they were accepted under. */
  readonly elsewhere: number;
  /** Past the journal's retention, so that nobody can tell whether they were for this sink. */
  readonly untold: number;
  readonly missing: number;
  /** More than one record of one event, as after a replay; no event counts twice above. */
  readonly copies: number;
  /** Records that stay sealed; those of destroyed keys count as delivered where one more is looked for than the journal has erased. */
  readonly sealed: number;
}

/** `damaged`: the journal itself was damaged. `abandoned`: events wait for a sink that is not configured. `unplaced`: the counts of a sink do not add up. `log`: the log of receipts and
 * the journal do not go together. */
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

/** How the log of receipts ended before the journal was counted. */
export interface LogAccount {
  readonly origin: string;
  readonly size: number;
  /** Base64. */
  readonly root: string;
  /** Events that the journal had by then, and the log did not: it takes them next. */
  readonly waiting: number;
}

/** One thing that does not add up. */
export interface Difference {
  readonly code: DifferenceCode;
  /** Null for one of the journal itself. */
  readonly sink: string | null;
  readonly count: number;
  /** The first ones, where they are known. */
  readonly ids: readonly string[];
  readonly detail: string;
}

export interface ReconcileReport {
  /** ISO 8601, whole hours; `until` is not part of it. */
  readonly since: string;
  readonly until: string;
  readonly sinks: readonly SinkAccount[];
  /** Events that the routes they were accepted under sent to no sink at all. */
  readonly nowhere: number;
  /** Null without receipts, or when it cannot be gone by: a difference says why. */
  readonly log: LogAccount | null;
  readonly differences: readonly Difference[];
  /** What limits the answer, in words. */
  readonly notes: readonly string[];
}

/** Ids named of each difference. */
export const NAMED = 20;
