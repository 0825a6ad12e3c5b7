import { asBuffer } from '../../lib/byte-writer.ts';
import type { Event, Handling, JournalEvent } from '../../core/event.ts';
import type { Redaction } from '../../core/route.ts';
import { OPEN_BRACKET, QUOTE } from '../../lib/json-text.ts';
import { RECORD_HEADER, aligned, isErasedAt, partsAt, startRecord, type RecordParts } from './format.ts';

/**
 * Events as records. The main thread encodes them, and the writer thread writes the same bytes to disk. A record has a header, the
 * event's identity (`8:webhooksmsg_1`: the length of the source, so that two sources never have the same identity), its head (the
 * JSON array below), and the body.
 */
type Head = readonly [
  type: string,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  headers: Readonly<Record<string, string>>,
  handling: Handling | null,
];

/** An event without its body as the tables have it, in the order of ROW_COLUMNS. */
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
/** Handling of an erased event, which goes to no sink. */
export const ERASED_HANDLING: Handling = Object.freeze({ only: [], erased: true });
/** Handling of a record in the place of a quarantined event. */
const ASIDE_HANDLING: Handling = Object.freeze({ ...ERASED_HANDLING, aside: true });
const NOTHING = Buffer.alloc(0);

export function identityOf(source: string, id: string): string {
  return `${source.length}:${source}${id}`;
}

/**
 * Records one after the other in a buffer of their own, which can be transferred. `finishRecord` completes them.
 * @param allocate returns a buffer of at least so many bytes
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

/** The event of an undamaged record; its body is a view. */
function eventAt(bytes: Buffer, at: number, seq: number): JournalEvent {
  const parts = partsAt(bytes, at);
  if (isErasedAt(bytes, at))
    return emptyEvent(seq, parts.receivedAt, parts.isEntry ? ASIDE_HANDLING : ERASED_HANDLING);
  const { source, id, head } = textsAt(bytes, at, parts);
  const [type, team, user, clientUser, headers, handling] = head;
  return {
    seq,
    id,
    source,
    type,
    team,
    user,
    clientUser,
    receivedAt: parts.receivedAt,
    headers,
    handling: handling ?? NO_HANDLING,
    body: bodyAt(bytes, at, parts),
  };
}

/** Events of a page, whose bodies are views into its bytes. */
export function eventsOf({ firstSeq, places, records }: Page): JournalEvent[] {
  const bytes = asBuffer(records);
  return places.map((at, index) =>
    at < 0 ? emptyEvent(firstSeq + index, 0, { only: [] }) : eventAt(bytes, at, firstSeq + index),
  );
}

/** Events of consecutive records; each seq is 0. */
export function decodeRecords(records: Uint8Array): JournalEvent[] {
  const bytes = asBuffer(records);
  const events: JournalEvent[] = [];
  for (let at = 0; at < bytes.length; at += partsAt(bytes, at).size) events.push(eventAt(bytes, at, 0));
  return events;
}

/** Events with consecutive seqs on their way to the main thread: the bytes are those of the segment. */
export interface Page {
  readonly firstSeq: number;
  /** Where each record begins in `records`; -1 for a damaged one, which becomes an empty event. */
  readonly places: readonly number[];
  /** A buffer of their own, which is transferred. */
  readonly records: Uint8Array;
}

/** An event in the place of a quarantined one. */
export function noEvent(seq: number, receivedAt: number): JournalEvent {
  return emptyEvent(seq, receivedAt, ASIDE_HANDLING);
}

/** An event without content. */
export function emptyEvent(seq: number, receivedAt: number, handling: Handling): JournalEvent {
  const empty = { id: '', source: '', type: '', team: null, user: null, clientUser: null, headers: {} };
  return { seq, ...empty, receivedAt, handling, body: NOTHING };
}

/** The event as a row of the tables, without the body. @throws SyntaxError when it is damaged */
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

/** The row with redactions in its handling. */
export function withRedactions(row: EventRow, redactions: readonly Redaction[]): EventRow {
  const [id, source, type, team, user, clientUser, receivedAt, headers, text] = row;
  const handling: Handling = { ...(text === null ? {} : (JSON.parse(text) as Handling)), redactions };
  return [id, source, type, team, user, clientUser, receivedAt, headers, JSON.stringify(handling)];
}

export function identityAt(bytes: Buffer, at: number, { identityBytes }: Sizes): Buffer {
  return bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + identityBytes);
}

/** The body as a view. */
export function bodyAt(bytes: Buffer, at: number, { identityBytes, headBytes, bodyBytes }: Sizes): Buffer {
  const from = at + RECORD_HEADER + identityBytes + headBytes;
  return bytes.subarray(from, from + bodyBytes);
}

/** @throws SyntaxError */
export function textsAt(
  bytes: Buffer,
  at: number,
  parts: Sizes,
): { readonly source: string; readonly id: string; readonly head: Head } {
  const from = at + RECORD_HEADER + parts.identityBytes;
  const head = JSON.parse(bytes.toString('utf8', from, from + parts.headBytes)) as Head;
  return { ...sourceAndId(identityAt(bytes, at, parts)), head };
}

/** Id, type and handling, without parsing the rest of the head. @throws SyntaxError when it is damaged */
export function titleAt(
  bytes: Buffer,
  at: number,
  parts: Sizes,
): { readonly id: string; readonly type: string; readonly handling: Handling | null } {
  const { id } = sourceAndId(identityAt(bytes, at, parts));
  const from = at + RECORD_HEADER + parts.identityBytes;
  const to = from + parts.headBytes;
  // Most heads are `["daily.data.meal.created",…,null]`: only the type becomes a string.
  if (bytes[from] === OPEN_BRACKET && bytes[from + 1] === QUOTE && endsPlainly(bytes, to)) {
    const end = bytes.indexOf(QUOTE, from + 2);
    const type = bytes.toString('utf8', from + 2, end);
    // A damaged head may have no quote; nothing of the body may be read.
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
