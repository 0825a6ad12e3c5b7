import { MillraceError } from '../../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import type { DeadLetter } from '../../core/journal.ts';
import { formatTarget, type Target } from '../../core/route.ts';
import { isRecord, jsonIn } from '../../lib/parsed.ts';
import type { Message } from '../../vendors/kafka/message.ts';
import { emptyEvent, ERASED_HANDLING } from '../segments/records.ts';

/** The fields that other consumers do not need, as JSON in one header: each header takes time and space. */
interface OwnHeader {
  readonly source: string;
  readonly at: number;
  readonly headers: Event['headers'];
  readonly handling: Handling;
  /** The event's key within its source, if that is not its id. */
  readonly key?: string;
  /** Set when a person retried the event, so that it is no repetition. */
  readonly again?: string;
  readonly reasons?: readonly InvalidReason[];
  readonly letter?: Refusal;
}

/** Where a record lies in the topic of events. */
export interface PartitionOffset {
  readonly partition: number;
  readonly offset: number;
}

/** What a dead letter says of the sink that refused the event. */
export type Refusal = Omit<DeadLetter, 'key' | 'event' | 'bodyBytes'>;

/** An event in a record of one of the topics. */
export interface RecordedEvent {
  readonly event: Event;
  readonly handling: Handling;
  readonly dedupKey: string;
  /** Set when a person retried the event; the same text is the same retry. */
  readonly again: string | null;
  readonly reasons: readonly InvalidReason[];
  readonly refusal: Refusal | null;
}

export type RecordExtras = Partial<Omit<RecordedEvent, 'event'>>;

const ID = Buffer.from('idempotency-key');
const TYPE = Buffer.from('event-type');
const TEAM = Buffer.from('team-id');
const USER = Buffer.from('user-id');
const CLIENT_USER = Buffer.from('client-user-id');
const OWN = Buffer.from('millrace');

/** The record of an event: its bytes as they came, and its envelope under the names that the sinks use. */
export function recordOf(event: Event, key: Buffer | null, extras: RecordExtras): Message {
  const { id, type, team, user, clientUser, source, receivedAt: at, headers, body } = event;
  const { handling = {}, dedupKey = id, again = null, reasons = [], refusal = null } = extras;
  const own: OwnHeader = {
    source,
    at,
    headers,
    handling,
    ...(dedupKey === id ? {} : { key: dedupKey }),
    ...(again === null ? {} : { again }),
    ...(reasons.length === 0 ? {} : { reasons }),
    ...(refusal === null ? {} : { letter: refusal }),
  };
  const named: (readonly [Buffer, string])[] = [
    [OWN, JSON.stringify(own)],
    [ID, id],
    [TYPE, type],
  ];
  if (team !== null) named.push([TEAM, team]);
  if (user !== null) named.push([USER, user]);
  if (clientUser !== null) named.push([CLIENT_USER, clientUser]);
  return { key, value: body, headers: named };
}

/** The handling of an event in a topic, where the routes of its time are not kept: with its targets and their redactions. */
export function addressed(handling: Handling, targets: readonly Target[]): Handling {
  const without = targets.flatMap((target) =>
    target.redactions === undefined ? [] : [[formatTarget(target), target.redactions] as const],
  );
  return {
    ...handling,
    only: targets.map(formatTarget),
    ...(without.length === 0 ? {} : { without: Object.fromEntries(without) }),
  };
}

/** A record as it was fetched. */
export interface RawRecord {
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [Buffer | null, Buffer | null])[];
}

/**
 * The event of a record; null for a record of another program.
 * @throws MillraceError journal_unreadable for a sealed record of an earlier version: skipping it would lose its event
 */
export function recordedEventOf({ value, headers }: RawRecord): RecordedEvent | null {
  const found = new Map(headers.map(([name, text]) => [String(name ?? ''), text]));
  if (found.has('millrace-sealed'))
    throw new MillraceError(
      'journal_unreadable',
      'a topic has sealed records, which only an earlier version can read: deliver them with that version, and create new topics',
    );
  const text = (name: string): string | null => found.get(name)?.toString() ?? null;
  const own = ownHeaderIn(text('millrace'));
  const id = text('idempotency-key');
  if (value === null || own === null || id === null) return null;
  const event: Event = {
    id,
    type: text('event-type') ?? '',
    team: text('team-id'),
    user: text('user-id'),
    clientUser: text('client-user-id'),
    source: own.source,
    receivedAt: own.at,
    headers: own.headers,
    // A copy: a slice would keep the whole fetch in memory for as long as the event waits.
    body: Buffer.from(value),
  };
  const { handling, key: dedupKey = id, again = null, reasons = [], letter: refusal = null } = own;
  return { event, handling, dedupKey, again, reasons, refusal };
}

function ownHeaderIn(text: string | null): OwnHeader | null {
  const value = text === null ? null : jsonIn(text);
  if (!isRecord(value) || !isOwnHeader(value)) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked as far as it is read
  return value as unknown as OwnHeader;
}

/** Checks what is read of a header: the record of another program must not stop those behind it. */
function isOwnHeader(own: Readonly<Record<string, unknown>>): boolean {
  const { source, at, headers, handling, key, again, reasons, letter: refusal } = own;
  if (typeof source !== 'string' || !Number.isSafeInteger(at)) return false;
  if (!isRecord(headers) || !Object.values(headers).every(isText) || !isRecord(handling)) return false;
  const { only, without } = handling;
  if (only !== undefined && !(Array.isArray(only) && only.every(isText))) return false;
  if (without !== undefined && !(isRecord(without) && Object.values(without).every(Array.isArray)))
    return false;
  if (![key, again].every((each) => each === undefined || isText(each))) return false;
  if (reasons !== undefined && !(Array.isArray(reasons) && reasons.every(isRecord))) return false;
  return refusal === undefined || (isRecord(refusal) && isText(refusal['sink']));
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

/** An event that a feed has from a topic. */
export interface FetchedEvent extends JournalEvent {
  readonly place?: PartitionOffset;
}

/** The event of a seq that has nothing for the sink: a repetition, or a record of another program. */
export function nothingAt(seq: number): JournalEvent {
  return emptyEvent(seq, 0, ERASED_HANDLING);
}
