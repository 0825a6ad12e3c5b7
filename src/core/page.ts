import type { Selection } from './journal.ts';
import type { JournalEvent } from './event.ts';

/**
 * The events of a log's next page: at least one if there is one, then as many as the limits allow.
 * @param events in order of seq, without holes
 * @param from index of the first
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

/** Letters that are asked for at once. */
const LETTERS = 200;

/**
 * All letters of a selection, page by page. A page can be short of what was asked for, because its bytes are bounded; only
 * an empty one is the end.
 */
export async function* pagesOf<T extends { readonly key: number }>(
  list: (selection: Selection) => Promise<readonly T[]>,
  selection: Selection,
): AsyncGenerator<readonly T[]> {
  let left = selection.limit ?? Number.POSITIVE_INFINITY;
  for (let after = selection.after ?? 0; left > 0;) {
    const page = await list({ ...selection, after, limit: Math.min(left, LETTERS) });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    left -= page.length;
    after = last.key;
  }
}
