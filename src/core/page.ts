import type { Selection } from './journal.ts';
import type { JournalEvent } from './event.ts';

/**
 * The next page of a log: at least one event if there is one, then as many as the limits allow.
 * @param from index of its first event
 */
export function pageOf(
  events: readonly JournalEvent[],
  from: number,
  limits: { readonly count: number; readonly bytes: number },
): JournalEvent[] {
  let size = 0;
  let end = from;
  for (; end < events.length && end - from < limits.count; end += 1) {
    const { length } = (events[end] as JournalEvent).body;
    if (end > from && size + length > limits.bytes) break;
    size += length;
  }
  return events.slice(from, end);
}

/** Entries asked for at once. */
const PAGE_COUNT = 200;

/** All entries of a selection, page by page. A page can have fewer than were asked for; only an empty one is the end. */
export async function* pagesOf<T extends { readonly key: number }>(
  list: (selection: Selection) => Promise<readonly T[]>,
  selection: Selection,
): AsyncGenerator<readonly T[]> {
  let left = selection.limit ?? Number.POSITIVE_INFINITY;
  for (let after = selection.after ?? 0; left > 0;) {
    const page = await list({ ...selection, after, limit: Math.min(left, PAGE_COUNT) });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    left -= page.length;
    after = last.key;
  }
}
