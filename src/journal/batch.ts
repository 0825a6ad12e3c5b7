import type { AppendResult } from '../core/ingest.ts';
import type { Waiting } from './group-commit.ts';
import { encodeRecords } from './segments/records.ts';

/** Events of one commit, and what to do with each besides storing it. */
export interface Batch {
  /** One after the other; a buffer that is all theirs. */
  readonly records: Uint8Array;
  readonly count: number;
  /** Reasons as JSON for an event that goes to quarantine, and null for one that does not; null when none does. */
  readonly invalid: readonly (string | null)[] | null;
  /** What stands for the id within the source; the event's id where left out, and for all when null. */
  readonly keys: readonly (string | undefined)[] | null;
}

/** What became of a batch. */
export interface Appended {
  /** Of each event, as `append` says. */
  readonly answers: readonly number[];
  /** The buffer of the batch, for who handed it over: nothing reads it any more. */
  readonly records: Uint8Array;
}

/** What became of an event of a batch, where it is not its seq. */
export const APPENDED = { duplicate: 0, quarantined: -1, reused: -2 } as const;

/** What is put aside may have an entry in the log of receipts: the answer has its seq as well. @param seq 0 for none */
export function asideAnswer(isReused: boolean, seq: number): number {
  return (isReused ? APPENDED.reused : APPENDED.quarantined) - 2 * seq;
}

/** What hardly any batch has is not sent. */
export function batchOf(waiting: readonly Waiting[], allocate: (bytes: number) => Buffer): Batch {
  const isInvalid = waiting.some(({ invalid }) => invalid !== null);
  const isKeyed = waiting.some(({ dedupKey }) => dedupKey !== undefined);
  return {
    records: encodeRecords(waiting, allocate),
    count: waiting.length,
    invalid: isInvalid ? waiting.map(({ invalid }) => invalid) : null,
    keys: isKeyed ? waiting.map(({ dedupKey }) => dedupKey) : null,
  };
}

/** @param answer as `appendBatch` says what became of an event */
export function resultOf(answer: number): Exclude<AppendResult, { status: 'erased' }> {
  if (answer === APPENDED.duplicate) return { status: 'duplicate' };
  if (answer > 0) return { status: 'accepted', seq: answer };
  return { status: answer % 2 === 0 ? 'reused' : 'accepted', seq: Math.ceil(-answer / 2) - 1 };
}
