import { onTestFinished } from 'vitest';
import type { Event, JournalEvent } from '../../src/core/event.ts';
import type { Batch } from '../../src/journal/batch.ts';
import { encodeRecords, eventsOf } from '../../src/journal/segments/records.ts';
import { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';

export const NOW = 1_700_000_000_000;
export const ALL = { count: 1000, bytes: 1e9 };
/** Bounds that no test reaches unless it says so. */
export const BOUNDS = { retention: 1000, dedupWindow: 60_000, maxBytes: 1e9, create: true };

export function openStore(path: string, bounds: Partial<typeof BOUNDS> = {}): Store {
  const store = new Store({ path, ...BOUNDS, ...bounds });
  onTestFinished(() => {
    try {
      store.close();
    } catch {
      // The test has closed it.
    }
  });
  return store;
}

export function batchOf(events: readonly Event[], invalid: string | null = null): Batch {
  return {
    records: encodeRecords(events.map((event) => ({ event }))),
    count: events.length,
    invalid: invalid === null ? null : events.map(() => invalid),
    keys: null,
  };
}

export const named = (...ids: string[]): Event[] => ids.map((id) => makeEvent({ id, receivedAt: NOW }));

export function append(store: Store, ...ids: string[]): readonly number[] {
  return store.append(batchOf(named(...ids)), NOW).answers;
}

export function eventsIn(store: Store, after = 0, limits = ALL): readonly JournalEvent[] {
  return eventsOf(store.read(after, limits, NOW));
}

/** All there are, page by page. */
export function allIn(store: Store): readonly JournalEvent[] {
  const all: JournalEvent[] = [];
  for (;;) {
    const page = eventsIn(store, all.at(-1)?.seq ?? 0);
    if (page.length === 0) return all;
    all.push(...page);
  }
}
