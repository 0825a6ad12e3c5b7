import type { JournalEvent } from './event.ts';

/**
 * The events of a log's next page: at least one if there is one, then as many as the limits allow.
 * @param entries in order of seq, without holes
 * @param from index of the first
 */
export function pageOf<Entry>(
  entries: readonly Entry[],
  from: number,
  limits: { readonly count: number; readonly bytes: number },
  eventOf: (entry: Entry) => JournalEvent,
): JournalEvent[] {
  const page: JournalEvent[] = [];
  let size = 0;
  for (let at = from; at < entries.length && page.length < limits.count; at += 1) {
    const event = eventOf(entries[at] as Entry);
    if (page.length > 0 && size + event.body.length > limits.bytes) break;
    size += event.body.length;
    page.push(event);
  }
  return page;
}
