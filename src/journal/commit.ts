import type { Clock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import { BufferPool } from '../lib/buffer-pool.ts';
import type { Remote } from '../lib/remote.ts';
import { resultOf, type Batch } from './batch.ts';
import type { PendingEvent } from './group-commit.ts';
import { encodeRecords, NO_HANDLING, noEvent } from './segments/records.ts';
import type { Store } from './store.ts';
import type { LastSeq, Tail } from './tail.ts';
import type { Upkeep } from './upkeep.ts';

interface CommitParts {
  readonly store: Remote<Store>;
  readonly tail: Tail;
  readonly last: LastSeq;
  readonly upkeep: Upkeep;
  readonly clock: Clock;
  readonly onCommit: ((events: number, durationMs: number) => void) | undefined;
}

/** Hands batches to the writer thread. @returns a function for `GroupCommit`; it never rejects */
export function committing(parts: CommitParts): (batch: readonly PendingEvent[]) => Promise<() => void> {
  const { store, upkeep, clock, onCommit } = parts;
  // Fresh memory for the records takes a quarter of the time that encoding them takes.
  const buffers = new BufferPool();
  return async (batch) => {
    const started = clock.monotonic();
    try {
      const encoded = batchOf(batch, (bytes) => buffers.take(bytes));
      const { answers, records } = await store.append(encoded, clock.now());
      upkeep.noteRoom();
      buffers.give(Buffer.from(records.buffer));
      onCommit?.(batch.length, clock.monotonic() - started);
      return () => settle(batch, answers, parts);
    } catch (error) {
      upkeep.noteFailure(error);
      return () => {
        for (const { reject } of batch) reject(error as MillraceError);
      };
    }
  };
}

/** Columns that hardly any batch needs are null. */
function batchOf(events: readonly PendingEvent[], allocate: (bytes: number) => Buffer): Batch {
  const isInvalid = events.some(({ invalid }) => invalid !== null);
  const isKeyed = events.some(({ dedupKey }) => dedupKey !== undefined);
  return {
    records: encodeRecords(events, allocate),
    count: events.length,
    invalid: isInvalid ? events.map(({ invalid }) => invalid) : null,
    keys: isKeyed ? events.map(({ dedupKey }) => dedupKey) : null,
  };
}

/** Resolves the events of a batch, and adds the appended ones to the tail. */
function settle(
  batch: readonly PendingEvent[],
  answers: readonly number[],
  { tail, last }: Pick<CommitParts, 'tail' | 'last'>,
): void {
  let lastSeq = 0;
  for (const [index, { event, handling = NO_HANDLING, resolve }] of batch.entries()) {
    const answer = answers[index] as number;
    const result = resultOf(answer);
    if (result.status !== 'duplicate' && result.seq > 0) {
      lastSeq = result.seq;
      tail.push(answer > 0 ? { ...event, seq: lastSeq, handling } : noEvent(lastSeq, event.receivedAt));
    }
    resolve(result);
  }
  if (lastSeq > 0) last.advance(lastSeq);
}
