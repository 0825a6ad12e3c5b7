import { MillraceError } from '../../core/errors.ts';
import type { CountKind, EventHead, JournalAccount } from '../../core/journal.ts';
import type { EventSummary, Operations } from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { AcceptedRoutes } from '../../deliver/routes/accepted.ts';
import type { EventIds } from './event-ids.ts';
import { fatesBy } from './fates.ts';
import type { IdCounts } from './id-counter.ts';
import { NAMED } from './report.ts';
import type { Window } from './window.ts';

/** The events of a window by the journal. */
export interface JournalSide {
  /** As counted when they were received. */
  readonly accepted: number;
  readonly duplicates: number;
  readonly quarantined: number;
  readonly replayed: number;
  /** Refused when they were received, as their users were erased. */
  readonly refusedErased: number;
  /** Events that the journal still has. */
  readonly retained: number;
  /** Events erased from the journal or from quarantine. */
  readonly erased: number;
  /** A sink for each event that was erased before it was delivered there and then removed from the journal. */
  readonly erasedAlone: readonly string[];
  /** Accepted, and removed by retention. */
  readonly past: number;
  /** In quarantine now. */
  readonly inQuarantine: number;
  /** Dropped by a person, from quarantine. */
  readonly dropped: number;
  /** Missing seqs. */
  readonly gap: number;
  /** Unreadable records that a sink has not received. */
  readonly illegible: number;
  /** Events that the routes they were accepted under led nowhere. */
  readonly nowhere: number;
  readonly sinks: ReadonlySet<string>;
  /** Events of any time that wait for a sink that is not configured, by sink, with the first ids. */
  readonly abandoned: ReadonlyMap<string, { readonly count: number; readonly ids: readonly string[] }>;
  readonly notes: readonly string[];
}

/** The part that is read before the ids are compared with those of the files. */
export type JournalReading = Pick<
  JournalSide,
  'erased' | 'inQuarantine' | 'gap' | 'illegible' | 'nowhere' | 'sinks' | 'abandoned'
>;

/** Adds the events of a window to `ids`, with their sinks and states. */
export async function readJournal(
  operations: Operations,
  account: JournalAccount,
  configured: ReadonlySet<string>,
  accepted: AcceptedRoutes,
  ids: EventIds,
  window: Window,
  signal: AbortSignal,
): Promise<JournalReading> {
  const fateOf = fatesBy(account, accepted, configured, ids);
  const inQuarantine = await readSetAside(operations, ids, window);
  const sinks = new Set<string>();
  const abandoned = new Map<string, { count: number; ids: string[] }>();
  let nowhere = 0;
  let erased = 0;
  let gap = 0;
  let illegible = 0;
  const behind = Math.min(...account.cursors.map(([, seq]) => seq));
  let at = account.firstSeq - 1;
  let isFirst = true;
  const take = (head: EventHead): void => {
    if (head.seq !== at + 1 && !isFirst && account.isSparse !== true) gap += head.seq - at - 1;
    isFirst = false;
    at = head.seq;
    const { id, receivedAt } = head;
    const inWindow = receivedAt >= window.since && receivedAt < window.until && !head.replayed;
    if (head.erased) {
      if (inWindow) erased += 1;
      return;
    }
    if (id === '') {
      if (head.seq > behind) illegible += 1;
      return;
    }
    const fate = fateOf(head);
    for (const sink of fate.abandoned) {
      const found = getOrMake(abandoned, sink, () => ({ count: 0, ids: [] }));
      found.count += 1;
      if (found.ids.length < NAMED) found.ids.push(id);
    }
    if (!inWindow) return;
    if (fate.isNowhere) nowhere += 1;
    for (const sink of fate.sinks) sinks.add(sink);
    ids.event(id, fate.due, receivedAt);
  };
  for await (const heads of headsOf(operations, at, account.lastSeq, signal))
    for (const head of heads) take(head);
  // Events that retention removed during the reading are no gap.
  if (gap > 0) gap = Math.max(0, gap - ((await operations.account(0, 0)).firstSeq - account.firstSeq));
  return { erased, inQuarantine, gap, illegible, nowhere, sinks, abandoned };
}

/** Heads up to a seq, a page at a time: a step of an async generator costs more than counting a head. */
export async function* headsOf(
  operations: Operations,
  after: number,
  upTo: number,
  signal: AbortSignal,
): AsyncGenerator<readonly EventHead[]> {
  const ask = (from: number): Promise<readonly EventHead[]> => {
    const page = operations.listHeads(from);
    // It can fail while the page before is counted, or after the last one.
    page.catch(() => undefined);
    return page;
  };
  let at = after;
  let coming = ask(at);
  try {
    for (;;) {
      signal.throwIfAborted();
      const page = await coming;
      const last = page.at(-1);
      if (last === undefined) return;
      if (last.seq <= at)
        throw new MillraceError('internal', 'the journal answered with the same page twice');
      at = last.seq;
      if (at < upTo) coming = ask(at);
      yield at > upTo ? page.filter(({ seq }) => seq <= upTo) : page;
      if (at >= upTo) return;
    }
  } finally {
    await Promise.allSettled([coming]);
  }
}

/** Marks quarantined events and dead letters. @returns the number of quarantined events */
async function readSetAside(
  operations: Operations,
  ids: EventIds,
  { since, until }: Window,
): Promise<number> {
  const isInside = ({ received_at: at }: EventSummary): boolean =>
    Date.parse(at) >= since && Date.parse(at) < until;
  let inQuarantine = 0;
  for await (const page of pagesOf((part) => operations.listQuarantine(part, false), {}))
    for (const { id, reasons } of page.filter(isInside))
      // A damaged record counts as accepted.
      if (reasons.some(({ code }) => code === 'damaged')) ids.mark(null, id, 'quarantined');
      else inQuarantine += 1;
  for await (const page of pagesOf((part) => operations.listDeadLetters(part, false), {}))
    for (const { sink, id } of page.filter(isInside)) ids.mark(sink, id, 'dead');
  return inQuarantine;
}

/** Combines what was read with the ids and the counts of receipt. */
export function journalSide(
  account: JournalAccount,
  reading: JournalReading,
  { events: retained, droppedForAll: dropped }: Pick<IdCounts, 'events' | 'droppedForAll'>,
): JournalSide {
  const { erased, inQuarantine } = reading;
  const counted = (kind: CountKind): number =>
    account.counts.reduce((sum, count) => (count.kind === kind ? sum + count.n : sum), 0);
  const notes: string[] = [...(account.notes ?? [])];
  const released = counted('released');
  const left = retained + erased;
  const inAll = counted('accepted') + released;
  if (inAll < left) {
    const since = account.countedSince === null ? 'never' : new Date(account.countedSince).toISOString();
    const before = 'what came before is counted as far as the journal holds it';
    notes.push(`deliveries are counted since ${since}: ${before}`);
  }
  const all = Math.max(inAll, left);
  const quarantined = Math.max(counted('quarantined'), released + inQuarantine + dropped);
  return {
    ...reading,
    accepted: all - released,
    duplicates: counted('duplicates'),
    quarantined,
    replayed: counted('replayed'),
    refusedErased: counted('erased'),
    retained,
    erased: erased + quarantined - released - inQuarantine - dropped,
    erasedAlone: account.erasedAlone ?? [],
    past: all - left,
    dropped,
    notes,
  };
}
