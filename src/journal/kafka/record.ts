import { MillraceError } from '../../core/errors.ts';
import type { Event, Handling, JournalEvent } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import type { DeadLetter } from '../../core/journal.ts';
import { formatTarget, type Target } from '../../core/route.ts';
import { isRecord } from '../../lib/is-record.ts';
import { jsonIn } from '../../lib/parsed.ts';
import type { Message } from '../../vendors/kafka/message.ts';
import { emptyEvent, ERASED_HANDLING } from '../segments/records.ts';

/** What a record says of its event beside what every consumer finds: one header, for each header has its price. */
interface Rest {
  readonly source: string;
  readonly at: number;
  readonly headers: Event['headers'];
  readonly handling: Handling;
  /** What stands for the id within the source, where that is not the id. */
  readonly key?: string;
  /** A person has sent it on its way again: it is no repetition. */
  readonly again?: string;
  readonly reasons?: readonly InvalidReason[];
  readonly letter?: Letter;
}

/** Where an event lies in the topic of events. */
export interface Place {
  readonly partition: number;
  readonly offset: number;
}

/** What a dead letter says of the sink that refused it. */
export type Letter = Omit<DeadLetter, 'key' | 'event' | 'bodyBytes'>;

/** An event as it lies in a topic. */
export interface Kept {
  readonly event: Event;
  readonly handling: Handling;
  readonly dedupKey: string;
  /** A person has sent it on its way again: it is no repetition. What tells this time from others. */
  readonly again: string | null;
  readonly reasons: readonly InvalidReason[];
  readonly letter: Letter | null;
}

export interface Extra {
  readonly handling?: Handling | undefined;
  readonly dedupKey?: string | undefined;
  readonly again?: string | null;
  readonly reasons?: readonly InvalidReason[];
  readonly letter?: Letter;
}

const ID = Buffer.from('idempotency-key');
const TYPE = Buffer.from('event-type');
const TEAM = Buffer.from('team-id');
const USER = Buffer.from('user-id');
const CLIENT_USER = Buffer.from('client-user-id');
const REST = Buffer.from('millrace');

/** The record of an event: its bytes as they came; its envelope under the names that the sinks use. */
export function recordOf(event: Event, key: Buffer | null, extra: Extra): Message {
  const { id, type, team, user, clientUser, source, receivedAt: at, headers, body } = event;
  const { handling = {}, dedupKey, again = null, reasons = [], letter } = extra;
  const rest: Rest = {
    source,
    at,
    headers,
    handling,
    ...(dedupKey === undefined || dedupKey === id ? {} : { key: dedupKey }),
    ...(again === null ? {} : { again }),
    ...(reasons.length === 0 ? {} : { reasons }),
    ...(letter === undefined ? {} : { letter }),
  };
  const named: (readonly [Buffer, string])[] = [
    [REST, JSON.stringify(rest)],
    [ID, id],
    [TYPE, type],
  ];
  if (team !== null) named.push([TEAM, team]);
  if (user !== null) named.push([USER, user]);
  if (clientUser !== null) named.push([CLIENT_USER, clientUser]);
  return { key, value: body, headers: named };
}

/** What travels with an event in a topic, where no journal remembers the routes of its time: its targets, and what they go without. */
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

/** A record as it was read. */
export interface RawRecord {
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [Buffer | null, Buffer | null])[];
}

/**
 * The event of a record; null for one that nobody here has written.
 * @throws MillraceError journal_unreadable for a sealed record of an earlier version: to pass over it would lose its event
 */
export function keptOf({ value, headers }: RawRecord): Kept | null {
  const found = new Map(headers.map(([name, text]) => [String(name ?? ''), text]));
  if (found.has('millrace-sealed'))
    throw new MillraceError(
      'journal_unreadable',
      'a topic has sealed records, which only an earlier version reads: deliver them with it, and begin new topics',
    );
  const text = (name: string): string | null => found.get(name)?.toString() ?? null;
  const rest = restOf(text('millrace'));
  const id = text('idempotency-key');
  if (value === null || rest === null || id === null) return null;
  const event: Event = {
    id,
    type: text('event-type') ?? '',
    team: text('team-id'),
    user: text('user-id'),
    clientUser: text('client-user-id'),
    source: rest.source,
    receivedAt: rest.at,
    headers: rest.headers,
    // A copy: a slice would keep all that was fetched with it for as long as the event waits.
    body: Buffer.from(value),
  };
  return {
    event,
    handling: rest.handling,
    dedupKey: rest.key ?? id,
    again: rest.again ?? null,
    reasons: rest.reasons ?? [],
    letter: rest.letter ?? null,
  };
}

function restOf(text: string | null): Rest | null {
  if (text === null) return null;
  const value = jsonIn(text);
  if (!isRecord(value) || !isWritten(value)) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by recordOf; strangers' records lack the above
  return value as unknown as Rest;
}

/** Whether a record can be worked with, whoever wrote it: one that cannot must not stop those behind it. */
function isWritten({ source, at, headers, handling, key, again, reasons, letter }: Mapping): boolean {
  if (typeof source !== 'string' || !Number.isSafeInteger(at)) return false;
  if (!isRecord(headers) || !Object.values(headers).every(isText) || !isRecord(handling)) return false;
  const { only, without } = handling;
  if (only !== undefined && !(Array.isArray(only) && only.every(isText))) return false;
  if (without !== undefined && !(isRecord(without) && Object.values(without).every(Array.isArray)))
    return false;
  if (![key, again].every((each) => each === undefined || isText(each))) return false;
  if (reasons !== undefined && !(Array.isArray(reasons) && reasons.every(isRecord))) return false;
  return letter === undefined || (isRecord(letter) && isText(letter['sink']));
}

type Mapping = Readonly<Record<string, unknown>>;

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

/** An event that came out of a topic. */
export interface SharedEvent extends JournalEvent {
  readonly again?: string | null;
  /** Where it lies. */
  readonly place?: Place;
}

/** A place in a sink's log for what the sink does not get: a repetition, or a record of somebody else's. */
export function nothingAt(seq: number): JournalEvent {
  return emptyEvent(seq, 0, ERASED_HANDLING);
}
