import { MillraceError } from '../../core/errors.ts';
import type { Event, JournalEvent } from '../../core/event.ts';
import { ID_REUSED } from '../../core/ingest.ts';
import type { CursorStatus, EventStore, Journal, Selection } from '../../core/journal.ts';
import type {
  EventSummary,
  Operations,
  ReceivingStatus,
  RetryResult,
  SinkStatus,
} from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import type { DroppedEntries, DroppedNote } from '../../core/proof.ts';
import type { SetAsideEntry, SetAsideKind } from '../../core/receipt.ts';
import { NO_ROUTES } from '../../core/route-record.ts';
import type { SchemaReport } from '../../core/schema.ts';
import type { SinkTrouble } from '../../core/sink.ts';
import { Serial } from '../../lib/serial.ts';
import type { Validation } from '../../receive/validate/envelope.ts';

export interface OperationsOptions {
  readonly journal: AdministeredJournal | ReadableJournal;
  readonly validate: (body: Buffer) => Validation;
  /** Process id to report, or null for a command that opened the journal itself. */
  readonly pid: number | null;
  readonly sinks: () => readonly SinkStatus[];
  /** Left out by a command that opened the journal itself. */
  readonly receiving?: () => ReceivingStatus | null;
  /** What keeps files of earlier configs unfinished; left out by the same. */
  readonly earlier?: () => readonly SinkTrouble[];
  /** Whether a sink of that name is configured: what is retried for one that is not would reach nobody. */
  readonly hasSink: (name: string) => boolean;
  /** Events after a seq that are for a sink. Left out where the sinks of a journal are in other processes, too. */
  readonly countWaiting?: ((sink: string, after: number) => Promise<number>) | undefined;
  readonly dropSink: Operations['dropSink'];
  /** Notes for good what the log of receipts has of what is about to be dropped: entries, base64. */
  readonly noteDropped: DroppedEntries['append'];
  /** What events look like; null, or left out, where that is not remembered. */
  readonly schema?: { report(): SchemaReport | Promise<SchemaReport> } | null;
}

/** What of a journal people look at and decide about. */
export type AdministeredJournal = Pick<
  Journal,
  | 'status'
  | 'listQuarantine'
  | 'release'
  | 'dropQuarantine'
  | 'listDeadLetters'
  | 'retryDeadLetters'
  | 'dropDeadLetters'
>;

/** A journal that can be read event by event, as one in topics cannot. */
type ReadableJournal = AdministeredJournal &
  Pick<Journal, 'read' | 'heads' | 'account' | 'listEntries' | 'routes'>;

/** Letters in one answer; their bytes are bounded by the journal. */
const LETTERS = 1000;
/** What one answer holds of the journal. */
const EVENTS = { count: 1000, bytes: 8 * 2 ** 20 };

/** The operations on a journal this process holds. */
export function createOperations(options: OperationsOptions): Operations {
  const { journal, validate, pid, sinks, receiving, earlier, hasSink, dropSink, schema } = options;
  const readable = 'read' in journal ? journal : null;
  // What is retried or dropped: of two that overlap neither could say what it dropped.
  const turns = new Serial();
  return {
    dropSink,
    routes: async () => (await readable?.routes()) ?? NO_ROUTES,
    schema: async () => (schema === null || schema === undefined ? nothingRemembered() : schema.report()),
    status: async () => {
      // Before the cursors, which are moved first: what waited for nothing then has its cursor at the end.
      const now = sinks();
      const status = await journal.status();
      const cursors = await Promise.all(
        status.cursors.map((cursor) => withWaiting(cursor, status.lastSeq, now, options)),
      );
      const running = { receiving: receiving?.() ?? null, earlier: earlier?.() ?? [] };
      return { pid, journal: { ...status, cursors }, sinks: sinks(), ...running };
    },
    listEvents: async ({ after = 0, limit = EVENTS.count }) => {
      if (readable === null) return unreadable();
      const found = await readable.read(after, { count: Math.min(limit, EVENTS.count), bytes: EVENTS.bytes });
      return found.map((event) => ({ ...summarise(event.seq, event, true), ...goneOf(event) }));
    },
    listHeads: async (after) => readable?.heads(after) ?? unreadable(),
    account: async (since, until) => readable?.account(since, until) ?? unreadable(),
    listQuarantine: async (selection, bodies) =>
      (await journal.listQuarantine(bounded(selection), bodies)).map((event) => ({
        ...summarise(event.key, event, bodies),
        reasons: event.reasons,
      })),
    retryQuarantine: (selection, isNamed = selection.keys !== undefined) =>
      turns.run(() => retryQuarantine(journal, validate, selection, isNamed)),
    dropQuarantine: (selection) => turns.run(() => drop(options, 'quarantine', selection)),
    listDeadLetters: async (selection, bodies) =>
      (await journal.listDeadLetters(bounded(selection), bodies)).map(
        ({ key, event, diedAt, bodyBytes, ...letter }) => ({
          ...summarise(key, { bodyBytes, ...event }, bodies),
          ...letter,
          ...(bodies && event.handling.redactions !== undefined
            ? { redactions: event.handling.redactions }
            : {}),
          died_at: new Date(diedAt).toISOString(),
        }),
      ),
    retryDeadLetters: (selection) => turns.run(() => retryDeadLetters(journal, hasSink, selection)),
    dropDeadLetters: (selection) => turns.run(() => drop(options, 'dead-letters', selection)),
    listEntries: async (kind, selection) => (await readable?.listEntries(kind, bounded(selection))) ?? [],
  };
}

/** Events are looked at so far to count them; of more, all count. */
const MOST_COUNTED = 10_000;

/** Behind a cursor is more than waits for its sink: what is for others, and what came through while an earlier one has trouble. */
async function withWaiting(
  cursor: CursorStatus,
  lastSeq: number,
  sinks: readonly SinkStatus[],
  { countWaiting }: OperationsOptions,
): Promise<CursorStatus> {
  const { sink, seq, backlog } = cursor;
  if (backlog === 0 || countWaiting === undefined) return cursor;
  const { waiting, lookedAt } = sinks.find((each) => each.sink === sink) ?? { waiting: 0, lookedAt: seq };
  const rest = Math.max(0, lastSeq - lookedAt);
  const more = rest === 0 || rest > MOST_COUNTED ? rest : await countWaiting(sink, lookedAt);
  return { ...cursor, backlog: Math.min(backlog, waiting + more) };
}

/** Puts each back for its sink; those whose sink is configured no longer stay where they are. */
async function retryDeadLetters(
  journal: AdministeredJournal,
  hasSink: OperationsOptions['hasSink'],
  selection: Selection,
): Promise<RetryResult> {
  // All of them first: what is refused once more meanwhile is not retried again.
  const found: number[][] = [];
  let kept = 0;
  for await (const page of pagesOf((part) => journal.listDeadLetters(part, false), selection)) {
    const keys = page.flatMap(({ key, sink }) => (hasSink(sink) ? [key] : []));
    kept += page.length - keys.length;
    if (keys.length > 0) found.push(keys);
  }
  let retried = 0;
  for (const keys of found) retried += await journal.retryDeadLetters({ keys });
  return { retried, kept };
}

/** Looks at each event again under the rules of now; what is fit joins the journal, the rest stays where it is. */
async function retryQuarantine(
  journal: AdministeredJournal,
  validate: OperationsOptions['validate'],
  selection: Selection,
  isNamed: boolean,
): Promise<RetryResult> {
  let retried = 0;
  let kept = 0;
  for await (const page of pagesOf((part) => journal.listQuarantine(part), selection)) {
    for (const { key, reasons, ...event } of page) {
      const validation = validate(event.body);
      // Whether it replaces the event whose id it has, or was forged with another secret, a person has to say.
      const isReused = !isNamed && reasons.some(({ code }) => code === ID_REUSED.code);
      if (!validation.isValid || isReused) {
        kept += 1;
        continue;
      }
      if (await journal.release(key, { ...event, ...validation.envelope })) retried += 1;
    }
  }
  return { retried, kept };
}

/** Noted before, for a crash between, and after: one that was retried, or erased, meanwhile was not dropped. */
async function drop(
  { journal, noteDropped }: OperationsOptions,
  kind: SetAsideKind,
  selection: Selection,
): Promise<number> {
  const list = (part: Selection): Promise<readonly { readonly key: number }[]> =>
    kind === 'quarantine' ? journal.listQuarantine(part, false) : journal.listDeadLetters(part, false);
  const dropKeys = (keys: readonly number[]): Promise<number> =>
    kind === 'quarantine' ? journal.dropQuarantine({ keys }) : journal.dropDeadLetters({ keys });
  let dropped = 0;
  for await (const page of pagesOf(list, selection)) {
    const keys = page.map(({ key }) => key);
    const entries = new Map<string | null, string[]>();
    const listed = async (part: Selection): Promise<readonly SetAsideEntry[]> =>
      'listEntries' in journal ? journal.listEntries(kind, part) : [];
    for await (const part of pagesOf(listed, { keys }))
      for (const { sink, entry } of part)
        if (entry !== null) entries.set(sink, [...(entries.get(sink) ?? []), entry]);
    const note = async (state: DroppedNote['state']): Promise<void> => {
      const notes = [...entries].map(([sink, some]) => ({ from: kind, sink, state, entries: some }));
      if (notes.length > 0) await noteDropped(notes);
    };
    await note('begun');
    const count = await dropKeys(keys);
    // Which of them were gone is not known.
    if (count === keys.length) await note('done');
    dropped += count;
  }
  return dropped;
}

/** @throws MillraceError usage */
export function unreadable(): never {
  const detail =
    'with journal.type: kafka the journal cannot be read event by event yet: read an archive instead';
  throw new MillraceError('usage', detail);
}

/** @throws MillraceError usage */
export function nothingRemembered(): never {
  throw new MillraceError(
    'usage',
    'fields are remembered in a journal on this machine: with acknowledge: journaled and journal.type: local',
  );
}

function bounded(selection: Selection): Selection {
  return { ...selection, limit: Math.min(selection.limit ?? 100, LETTERS) };
}

function goneOf({ id, handling }: JournalEvent): Pick<EventSummary, 'gone'> {
  if (id !== '') return {};
  return { gone: handling.aside === true ? 'quarantined' : handling.erased === true ? 'erased' : 'damaged' };
}

function summarise(
  key: number,
  event: Event & { readonly bodyBytes?: number | undefined },
  bodies: boolean,
): EventSummary {
  const { source, headers, body } = event;
  const shown = bodies ? { body_base64: body.toString('base64'), source, headers } : {};
  return { ...summaryOf(key, event, event.bodyBytes ?? body.length), ...shown };
}

export function summaryOf(
  key: number,
  { id, type, team, user, clientUser, receivedAt }: Omit<Event, 'source' | 'headers' | 'body'>,
  bytes: number,
): EventSummary {
  return {
    key,
    id,
    received_at: new Date(receivedAt).toISOString(),
    event_type: type,
    team_id: team,
    user_id: user,
    client_user_id: clientUser,
    bytes,
  };
}

/** The operations of a receiver with `acknowledge: delivered`: there is a status, and nothing kept to look at. */
export function directOperations(
  store: Pick<EventStore, 'status'>,
  running: Required<Pick<OperationsOptions, 'pid' | 'sinks' | 'receiving' | 'earlier'>>,
): Operations {
  const { pid, sinks, receiving, earlier } = running;
  return {
    status: async () => {
      const journal = await store.status();
      return { pid, journal, sinks: sinks(), receiving: receiving(), earlier: earlier() };
    },
    listEvents: nothing,
    listHeads: nothing,
    account: nothingKept,
    listQuarantine: nothing,
    retryQuarantine: nothingKept,
    dropQuarantine: nothingKept,
    listDeadLetters: nothing,
    retryDeadLetters: nothingKept,
    dropDeadLetters: nothingKept,
    listEntries: nothing,
    dropSink: nothingKept,
    routes: () => Promise.resolve(NO_ROUTES),
    schema: async () => nothingRemembered(),
  };
}

function nothing(): Promise<readonly never[]> {
  return Promise.resolve([]);
}

function nothingKept(): Promise<never> {
  return Promise.reject(new MillraceError('usage', 'with acknowledge: delivered nothing is kept here'));
}
