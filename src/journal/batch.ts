import type { AppendResult } from '../core/ingest.ts';

/** Most events of one commit. */
export const MOST_EVENTS = 1024;

/** The events of one commit on their way to the writer thread. */
export interface Batch {
  /** One after the other in a buffer of their own, which is transferred. */
  readonly records: Uint8Array;
  readonly count: number;
  /** Reasons as JSON for an event that goes to quarantine, null for others; null when no event of the batch does. */
  readonly invalid: readonly (string | null)[] | null;
  /** Replaces the id in deduplication, undefined where the event's id counts; null when it counts for all. */
  readonly keys: readonly (string | undefined)[] | null;
}

/** The answer to a batch. */
export interface Appended {
  /** By event: its seq, or what stands for its result; see `resultOf`. */
  readonly answers: readonly number[];
  /** The buffer of the batch, given back. */
  readonly records: Uint8Array;
}

/** Answers other than a seq. */
export const APPENDED = { duplicate: 0, quarantined: -1, reused: -2 } as const;

/** The answer for a quarantined event. @param seq of its entry for the log of receipts; 0 for none */
export function asideAnswer(isReused: boolean, seq: number): number {
  return (isReused ? APPENDED.reused : APPENDED.quarantined) - 2 * seq;
}

/** What an answer says. */
export function resultOf(answer: number): Exclude<AppendResult, { status: 'erased' }> {
  if (answer === APPENDED.duplicate) return { status: 'duplicate' };
  if (answer > 0) return { status: 'accepted', seq: answer };
  return { status: answer % 2 === 0 ? 'reused' : 'accepted', seq: Math.ceil(-answer / 2) - 1 };
}
