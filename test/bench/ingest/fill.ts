import { systemClock } from '../../../src/core/clock.ts';
import type { Event } from '../../../src/core/event.ts';
import { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { newDeliveryId } from '../../../src/sandbox/made-up-events.ts';
import { mealBody } from './requests.ts';

interface FillOptions {
  readonly sink?: string;
  readonly users?: number;
}

type JournalOptions = Parameters<typeof SqliteJournal.open>[0];

/** A journal without a receiver: every event is read from disk, none from memory. */
export function openJournal(path: string, more: Partial<JournalOptions> = {}): Promise<SqliteJournal> {
  return SqliteJournal.open({
    path,
    retention: 1e12,
    maxBytes: 2 ** 40,
    dedupWindow: 7 * DAY,
    create: true,
    clock: systemClock,
    tailBytes: 0,
    onFailure: (error) => {
      throw error;
    },
    ...more,
  });
}

const BATCH = 1024;
const DAY = 86_400_000;

/**
 * Puts `count` events with random ids into a journal without a receiver, so that its tables and its memory of ids are
 * what a receiver would have made. A sink that is not named here starts behind them when it is added.
 * @param sink all of them wait for it
 * @param users whose they are, in turn
 */
export async function fillJournal(
  path: string,
  count: number,
  signal: AbortSignal,
  { sink, users = 1 }: FillOptions = {},
): Promise<void> {
  const journal = await openJournal(path);
  try {
    if (sink !== undefined) await journal.openCursor(sink);
    // Two batches in flight, so that one is made while the other is written.
    let before: Promise<unknown> = Promise.resolve();
    for (let done = 0; done < count;) {
      signal.throwIfAborted();
      const size = Math.min(BATCH, count - done);
      const first = done;
      const batch = Promise.all(
        Array.from({ length: size }, (_, n) => journal.accept(eventOf(first + n, users))),
      );
      await before;
      before = batch;
      done += size;
    }
    await before;
  } finally {
    await journal.close();
  }
}

function eventOf(n: number, users: number): Event {
  const id = newDeliveryId();
  return {
    id,
    source: 'webhooks',
    receivedAt: Date.now(),
    type: 'daily.data.meal.created',
    team: '00000000-0000-4000-8000-000000000001',
    user: `00000000-0000-4000-8000-${String(2 + (n % users)).padStart(12, '0')}`,
    clientUser: null,
    headers: { 'webhook-id': id, 'webhook-signature': `v1,${'A'.repeat(43)}=` },
    body: mealBody(n),
  };
}
