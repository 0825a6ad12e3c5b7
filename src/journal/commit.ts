import type { Clock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import { BufferPool } from '../lib/buffer-pool.ts';
import type { Remote } from '../lib/remote.ts';
import { batchOf, resultOf } from './batch.ts';
import type { Waiting } from './group-commit.ts';
import { NO_HANDLING, noEvent } from './segments/records.ts';
import type { Store } from './store.ts';
import type { Tail, Newest } from './tail.ts';
import type { Upkeep } from './upkeep.ts';

interface CommitParts {
  readonly store: Remote<Store>;
  readonly tail: Tail;
  readonly newest: Newest;
  readonly upkeep: Upkeep;
  readonly clock: Clock;
  readonly onCommit: ((events: number, durationMs: number) => void) | undefined;
}

/** Hands each batch to the writer. @returns for each what tells whoever waits; never rejects */
export function committing(parts: CommitParts): (batch: readonly Waiting[]) => Promise<() => void> {
  const { store, upkeep, clock, onCommit } = parts;
  // For the records: fresh memory takes a quarter of what it costs to encode them.
  const buffers = new BufferPool();
  return async (batch) => {
    const started = clock.monotonic();
    try {
      const handed = batchOf(batch, (bytes) => buffers.take(bytes));
      const { answers, records } = await upkeep.noting(store.appendAndReturn(handed, clock.now()));
      buffers.give(Buffer.from(records.buffer));
      onCommit?.(batch.length, clock.monotonic() - started);
      return () => answer(batch, answers, parts);
    } catch (error) {
      return () => {
        for (const { reject } of batch) reject(error as MillraceError);
      };
    }
  };
}

function answer(
  batch: readonly Waiting[],
  answers: readonly number[],
  { tail, newest }: Pick<CommitParts, 'tail' | 'newest'>,
): void {
  let lastSeq = 0;
  for (const [index, { event, handling = NO_HANDLING, resolve }] of batch.entries()) {
    const given = answers[index] as number;
    const result = resultOf(given);
    if (result.status !== 'duplicate' && result.seq > 0) {
      lastSeq = result.seq;
      tail.push(given > 0 ? { ...event, seq: lastSeq, handling } : noEvent(lastSeq, event.receivedAt));
    }
    resolve(result);
  }
  if (lastSeq > 0) newest.reach(lastSeq);
}
