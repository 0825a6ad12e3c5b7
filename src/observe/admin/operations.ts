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
import { SET_ASIDE } from './audit.ts';

export interface OperationsOptions {
  readonly journal: AdministeredJournal | ReadableJournal;
  readonly validate: (body: Buffer) => Validation;
  /** Process id of the receiver; null for a command that opened the journal itself. */
  readonly pid: number | null;
  readonly sinks: () => readonly SinkStatus[];
  /** Absent for a command. */
  readonly receiving?: () => ReceivingStatus | null;
  /** Problems with open files of earlier configs; absent for a command. */
  readonly earlier?: () => readonly SinkTrouble[];
  /** Whether the config has the sink: dead letters of other sinks are not retried. */
  readonly hasSink: (name: string) => boolean;
  /** Counts events for a sink after a seq. Absent when other processes have sinks of the journal too. */
  readonly countWaiting?: ((sink: string, after: number) => Promise<number>) | undefined;
  readonly dropSink: Operations['dropSink'];
  /** Records entries of the log of receipts (base64) whose events are about to be dropped. */
  readonly noteDropped: DroppedEntries['append'];
  /** The schema memory; null or absent without one. */
  readonly schema?: { report(): SchemaReport | Promise<SchemaReport> } | null;
}

/** The part of a journal that operations use. */
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

/** Most quarantined events or dead letters in one answer; the journal limits their bytes. */
const MOST_SET_ASIDE = 1000;
/** Most events in one answer, and their bytes. */
const MOST_EVENTS = { count: 1000, bytes: 8 * 2 ** 20 };

/** Operations on a journal that this process holds. */
export function createOperations(options: OperationsOptions): Operations {
  const { journal, validate, pid, sinks, receiving, earlier, hasSink, dropSink, schema } = options;
  const readable = 'read' in journal ? journal : null;
  // Retries and drops run one after the other: overlapping ones could not count their events.
  const turns = new Serial();
  return {
    dropSink,
    routes: async () => (await readable?.routes()) ?? NO_ROUTES,
    schema: async () => (schema === null || schema === undefined ? noSchemaMemory() : schema.report()),
    status: async () => {
      // Before the cursors, which move first: a sink without waiting events then has its cursor at the end.
      const now = sinks();
      const status = await journal.status();
      const cursors = await Promise.all(
        status.cursors.map((cursor) => withWaiting(cursor, status.lastSeq, now, options)),
      );
      const running = { receiving: receiving?.() ?? null, earlier: earlier?.() ?? [] };
      return { pid, journal: { ...status, cursors }, sinks: sinks(), ...running };
    },
    listEvents: async ({ after = 0, limit = MOST_EVENTS.count }) => {
      if (readable === null) return unreadable();
      const count = Math.min(limit, MOST_EVENTS.count);
      const found = await readable.read(after, { ...MOST_EVENTS, count });
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
        ({ key, event, diedAt, bodyBytes, ...about }) => ({
          ...summarise(key, { bodyBytes, ...event }, bodies),
          ...about,
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

/** Up to so many events after the cursor are examined; of more, all are counted. */
const MOST_COUNTED = 10_000;

/** Counts waiting events: after a cursor there are also events for other sinks, and delivered ones behind a blocked one. */
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

/** Delivers dead letters again; those of a sink that the config does not have stay. */
async function retryDeadLetters(
  journal: AdministeredJournal,
  hasSink: OperationsOptions['hasSink'],
  selection: Selection,
): Promise<RetryResult> {
  // The list is complete before the first retry: an event that is refused again is not retried twice.
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

/** Validates quarantined events again; valid ones join the journal, the others stay. */
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
      // A person decides about a reused id: the event may be a correction, or forged with another secret.
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

/** Records the drop as begun and then as done: a crash in between, a retry or an erasure leaves it begun. */
async function drop(
  { journal, noteDropped }: OperationsOptions,
  kind: SetAsideKind,
  selection: Selection,
): Promise<number> {
  const names = SET_ASIDE[kind];
  const list = (part: Selection) => journal[names.list](part, false);
  let dropped = 0;
  for await (const page of pagesOf<{ key: number }>(list, selection)) {
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
    const count = await journal[names.drop]({ keys });
    // It is unknown which of them were missing.
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
function noSchemaMemory(): never {
  throw new MillraceError(
    'usage',
    'fields are remembered in a journal on this machine: with acknowledge: journaled and journal.type: local',
  );
}

function bounded(selection: Selection): Selection {
  return { ...selection, limit: Math.min(selection.limit ?? 100, MOST_SET_ASIDE) };
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

/** Operations of a receiver with `acknowledge: delivered`, which has a status and no journal. */
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
    listEvents: none,
    listHeads: none,
    account: noJournal,
    listQuarantine: none,
    retryQuarantine: noJournal,
    dropQuarantine: noJournal,
    listDeadLetters: none,
    retryDeadLetters: noJournal,
    dropDeadLetters: noJournal,
    listEntries: none,
    dropSink: noJournal,
    routes: () => Promise.resolve(NO_ROUTES),
    schema: async () => noSchemaMemory(),
  };
}

function none(): Promise<readonly never[]> {
  return Promise.resolve([]);
}

function noJournal(): Promise<never> {
  return Promise.reject(new MillraceError('usage', 'with acknowledge: delivered nothing is kept here'));
}
