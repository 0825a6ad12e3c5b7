import type { Event, Handling, JournalEvent } from '../../core/event.ts';
import type { Redaction } from '../../core/route.ts';
import { OPEN_BRACKET, QUOTE } from '../../lib/json-text.ts';
import { RECORD_HEADER, aligned, isErasedAt, partsAt, startRecord, type RecordParts } from './format.ts';

/**
 * Events as records, made by whoever hands them in: the bytes that travel between the threads are those on disk. Behind the
 * header of a record stand its identity (`8:webhooksmsg_1`: the length tells where the source ends, so that no id can be
 * spelled like another source's), its head (JSON of what else stands beside the body), and the body.
 */
type Head = readonly [
  type: string,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  headers: Readonly<Record<string, string>>,
  handling: Handling | null,
];

/** An event beside its body as the tables have it, in the order of ROW_COLUMNS. */
export type EventRow = readonly [
  id: string,
  source: string,
  type: string,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  receivedAt: number,
  /** JSON, as is the handling. */
  headers: string,
  handling: string | null,
];

export interface Handled {
  readonly event: Event;
  readonly handling?: Handling | undefined;
}

export const NO_HANDLING: Handling = Object.freeze({});
/** Handling of an event whose content is gone: there is no sink for it. */
export const ERASED_HANDLING: Handling = Object.freeze({ only: [], erased: true });
/** Of the place that the entry of a quarantined event keeps. */
const ASIDE_HANDLING: Handling = Object.freeze({ ...ERASED_HANDLING, aside: true });
const NOTHING = Buffer.alloc(0);

export function identityOf(source: string, id: string): string {
  return `${source.length}:${source}${id}`;
}

/**
 * One after the other, in a buffer that is all theirs: it is transferred. Their places are still to be filled in.
 * @param allocate gives at least so many bytes, with anything in them
 */
export function encodeRecords(
  events: readonly Handled[],
  allocate: (bytes: number) => Buffer = Buffer.allocUnsafeSlow,
): Uint8Array {
  const texts = events.map(textsOf);
  const size = texts.reduce((sum, text) => sum + text.size, 0);
  const bytes = allocate(size).subarray(0, size);
  let at = 0;
  for (const [index, { event, handling }] of events.entries()) {
    const { identity, head, identityBytes, headBytes, size: ownSize } = texts[index] as Texts;
    const { body, receivedAt } = event;
    const replayed = handling?.replayId !== undefined;
    const sizes = { identityBytes, headBytes, bodyBytes: body.length };
    startRecord(bytes, at, { ...sizes, replayed, isEntry: false, receivedAt });
    let end = at + RECORD_HEADER;
    end += bytes.write(identity, end);
    end += bytes.write(head, end);
    bytes.set(body, end);
    bytes.fill(0, end + body.length, at + ownSize);
    at += ownSize;
  }
  return bytes;
}

interface Texts {
  readonly identity: string;
  readonly head: string;
  readonly identityBytes: number;
  readonly headBytes: number;
  readonly size: number;
}

function textsOf({ event, handling }: Handled): Texts {
  const { id, source, type, team, user, clientUser, headers, body } = event;
  const isEmpty = handling === undefined || Object.keys(handling).length === 0;
  const identity = identityOf(source, id);
  const fields: Head = [type, team, user, clientUser, headers, isEmpty ? null : handling];
  const head = JSON.stringify(fields);
  const identityBytes = Buffer.byteLength(identity);
  const headBytes = Buffer.byteLength(head);
  const size = aligned(RECORD_HEADER + identityBytes + headBytes + body.length);
  return { identity, head, identityBytes, headBytes, size };
}

type Sizes = Pick<RecordParts, 'identityBytes' | 'headBytes' | 'bodyBytes'>;

/** What a sound record holds; its body is a view. */
function eventAt(bytes: Buffer, at: number, seq: number): JournalEvent {
  const parts = partsAt(bytes, at);
  if (isErasedAt(bytes, at))
    return emptyEvent(seq, parts.receivedAt, parts.isEntry ? ASIDE_HANDLING : ERASED_HANDLING);
  const { source, id, head } = textsAt(bytes, at, parts);
  const [type, team, user, clientUser, headers, handling] = head;
  const { receivedAt } = parts;
  const body = bodyAt(bytes, at, parts);
  return {
    seq,
    id,
    source,
    type,
    team,
    user,
    clientUser,
    receivedAt,
    headers,
    handling: handling ?? NO_HANDLING,
    body,
  };
}

/** Events of a page, whose bodies are views into its bytes. */
export function eventsOf({ firstSeq, places, records }: Page): JournalEvent[] {
  const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
  return places.map((at, index) =>
    at < 0 ? emptyEvent(firstSeq + index, 0, { only: [] }) : eventAt(bytes, at, firstSeq + index),
  );
}

/** Events of records that follow each other; each seq is 0. */
export function decodeRecords(records: Uint8Array): JournalEvent[] {
  const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
  const events: JournalEvent[] = [];
  for (let at = 0; at < bytes.length; at += partsAt(bytes, at).size) events.push(eventAt(bytes, at, 0));
  return events;
}

/** Events in order, without a hole, as they travel to the main thread: the bytes are those of the segment. */
export interface Page {
  /** Of the first; the others follow. */
  readonly firstSeq: number;
  /** Where each record begins; -1 for one that cannot be used: nobody's stands in its place. */
  readonly places: readonly number[];
  /** A buffer that is all theirs: it is transferred. */
  readonly records: Uint8Array;
}

/** Stands in the place of an entry whose event is in quarantine. */
export function noEvent(seq: number, receivedAt: number): JournalEvent {
  return emptyEvent(seq, receivedAt, ASIDE_HANDLING);
}

/** Stands in a place whose content is not there. */
export function emptyEvent(seq: number, receivedAt: number, handling: Handling): JournalEvent {
  const nobody = { id: '', source: '', type: '', team: null, user: null, clientUser: null };
  return { seq, ...nobody, receivedAt, headers: {}, handling, body: NOTHING };
}

/** The same as a row of the tables, without the body. @throws SyntaxError when it is not what was written */
export function rowAt(bytes: Buffer, at: number, parts: RecordParts = partsAt(bytes, at)): EventRow {
  const { source, id, head } = textsAt(bytes, at, parts);
  const [type, team, user, clientUser, headers, handling] = head;
  const text = handling === null ? null : JSON.stringify(handling);
  return [id, source, type, team, user, clientUser, parts.receivedAt, JSON.stringify(headers), text];
}

/** An event of the tables. */
export function eventOf(row: EventRow, body: Buffer): Handled {
  const [id, source, type, team, user, clientUser, receivedAt, headers, handling] = row;
  const said = { id, source, type, team, user, clientUser, receivedAt };
  return {
    event: { ...said, headers: JSON.parse(headers) as Record<string, string>, body },
    handling: handling === null ? NO_HANDLING : (JSON.parse(handling) as Handling),
  };
}

/** The same event, with what it has to go without noted beside it. */
export function goingWithout(row: EventRow, redactions: readonly Redaction[]): EventRow {
  const [id, source, type, team, user, clientUser, receivedAt, headers, text] = row;
  const handling: Handling = { ...(text === null ? {} : (JSON.parse(text) as Handling)), redactions };
  return [id, source, type, team, user, clientUser, receivedAt, headers, JSON.stringify(handling)];
}

export function identityAt(
  bytes: Buffer,
  at: number,
  { identityBytes }: Pick<Sizes, 'identityBytes'>,
): Buffer {
  return bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + identityBytes);
}

/** A view. */
export function bodyAt(bytes: Buffer, at: number, { identityBytes, headBytes, bodyBytes }: Sizes): Buffer {
  const from = at + RECORD_HEADER + identityBytes + headBytes;
  return bytes.subarray(from, from + bodyBytes);
}

/** @throws SyntaxError */
export function textsAt(
  bytes: Buffer,
  at: number,
  parts: Pick<Sizes, 'identityBytes' | 'headBytes'>,
): { readonly source: string; readonly id: string; readonly head: Head } {
  const from = at + RECORD_HEADER + parts.identityBytes;
  const head = JSON.parse(bytes.toString('utf8', from, from + parts.headBytes)) as Head;
  return { ...sourceAndId(identityAt(bytes, at, parts)), head };
}

/** Of a sound record: its id, type and handling, without what stands between. @throws SyntaxError */
export function titleAt(
  bytes: Buffer,
  at: number,
  parts: Pick<Sizes, 'identityBytes' | 'headBytes'>,
): { readonly id: string; readonly type: string; readonly handling: Handling | null } {
  const { id } = sourceAndId(identityAt(bytes, at, parts));
  const from = at + RECORD_HEADER + parts.identityBytes;
  const to = from + parts.headBytes;
  // `["daily.data.meal.created",…,null]`, as that of most is: only the type becomes a string.
  if (bytes[from] === OPEN_BRACKET && bytes[from + 1] === QUOTE && endsPlainly(bytes, to)) {
    const end = bytes.indexOf(QUOTE, from + 2);
    const type = bytes.toString('utf8', from + 2, end);
    // What is damaged may have none: of a body nothing is to come here.
    if (end !== -1 && end < to && !type.includes('\\')) return { id, type, handling: null };
  }
  const [type, , , , , handling] = JSON.parse(bytes.toString('utf8', from, to)) as Head;
  return { id, type, handling };
}

const NO_HANDLING_END = Buffer.from(',null]');

function endsPlainly(bytes: Buffer, to: number): boolean {
  return bytes.compare(NO_HANDLING_END, 0, NO_HANDLING_END.length, to - NO_HANDLING_END.length, to) === 0;
}

export function sourceAndId(identity: Buffer): { readonly source: string; readonly id: string } {
  const text = identity.toString();
  const colon = text.indexOf(':');
  const end = colon + 1 + Number(text.slice(0, colon));
  return { source: text.slice(colon + 1, end), id: text.slice(end) };
}
