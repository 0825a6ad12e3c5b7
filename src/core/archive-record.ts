import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { BACKSLASH, CLOSE_BRACE, OPEN_BRACE, QUOTE } from '../lib/json-text.ts';
import { isRecord, jsonIn } from '../lib/parsed.ts';
import type { ArchiveRecord } from './archive.ts';
import { deliveryIdOf } from './delivery-id.ts';
import type { RemovedEvent } from './erasure.ts';
import type { Event } from './event.ts';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const NULL = Buffer.from('null');
const REPLACEMENT = 'fffd';
/** Ends the fields before the event. A JSON string has no bare quote, so the first match is the right one. */
const EVENT_KEY = Buffer.from('},"event":');
const BASE64_KEY = Buffer.from(',"body_base64":"');

/** The event of a record; `receivedAt` is NaN when the record has no valid time. */
export function eventOfRecord(record: ArchiveRecord, body: Buffer): Event {
  return {
    id: deliveryIdOf(record.id),
    source: record.source,
    type: record.event_type,
    team: record.team_id,
    user: record.user_id,
    clientUser: record.client_user_id,
    receivedAt: Date.parse(record.received_at),
    headers: record.headers,
    body,
  };
}

/** The event of a record that an erasure removes. */
export function removedEventOf(record: ArchiveRecord, body: Buffer): RemovedEvent {
  const { source, id, user_id: user, event_type: type } = record;
  return { source, id: deliveryIdOf(id), user, type, bodyHash: hash('sha256', body, 'binary') };
}

/** The records of some events, each with its line feed. Takes about 2 µs for an event of 1 KB. */
export function formatRecords(events: readonly Event[]): Buffer {
  return recordPieces(events, Buffer.allocUnsafe, Number.POSITIVE_INFINITY)[0] as Buffer;
}

/** Bytes from which on a body is not copied: to write one more piece is faster. */
const LARGE = 4096;

/**
 * The same in pieces: large bodies are pieces of their own, the rest shares one buffer.
 * @param allocate returns at least so many bytes, with any content; called once
 * @param large bytes from which on a body is a piece
 */
export function recordPieces(
  events: readonly Event[],
  allocate: (bytes: number) => Buffer,
  large = LARGE,
): Buffer[] {
  const heads: string[] = [];
  const texts: Buffer[] = [];
  const tails: string[] = [];
  let room = 0;
  for (const event of events) {
    const { body } = event;
    const head = recordHead(event);
    const text = bodyText(body);
    const tail = text === body ? '}\n' : `,"body_base64":"${body.toString('base64')}"}\n`;
    heads.push(head);
    texts.push(text);
    tails.push(tail);
    // A UTF-16 unit has at most 3 bytes in UTF-8.
    room += head.length * 3 + (text.length < large ? text.length : 0) + tail.length;
  }
  const out = allocate(room);
  const pieces: Buffer[] = [];
  let from = 0;
  let at = 0;
  for (const [i, text] of texts.entries()) {
    at += out.write(heads[i] as string, at);
    if (text.length < large) at += text.copy(out, at);
    else {
      pieces.push(out.subarray(from, at), text);
      from = at;
    }
    at += out.write(tails[i] as string, at, 'latin1');
  }
  pieces.push(out.subarray(from, at));
  return pieces;
}

/** The text before the event's own bytes. */
function recordHead(event: Event): string {
  const text = JSON.stringify({
    id: wellFormed(event.id),
    source: wellFormed(event.source),
    received_at: isoTime(event.receivedAt),
    event_type: wellFormed(event.type),
    team_id: wellFormedOrNull(event.team),
    user_id: wellFormedOrNull(event.user),
    client_user_id: wellFormedOrNull(event.clientUser),
    headers: event.headers,
  });
  return `${text.slice(0, -1)},"event":`;
}

/** The last second, and its text without milliseconds: events come in the order of their time. */
let second = Number.NaN;
let upToSecond = '';

function isoTime(ms: number): string {
  const own = Math.floor(ms / 1000);
  if (own !== second) {
    upToSecond = new Date(own * 1000).toISOString().slice(0, -'000Z'.length);
    second = own;
  }
  return `${upToSecond}${String(Math.floor(ms - own * 1000)).padStart(3, '0')}Z`;
}

function wellFormedOrNull(text: string | null): string | null {
  return text === null ? null : wellFormed(text);
}

// Many JSON readers refuse the escape of a lone surrogate; the body has it exactly.
function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/**
 * What stands as `event`: the body itself (the same object) when it can stand in a line of NDJSON that every reader
 * takes; a copy with raw line breaks as spaces and lone surrogate escapes as `\ufffd`, of the same length; or `null`
 * when the body is not UTF-8 or no JSON object. All but the first need `body_base64` beside it.
 */
export function bodyText(body: Buffer): Buffer {
  if (!isObjectShaped(body) || !isUtf8(body)) return NULL;
  const breaks = body.includes(LINE_FEED) || body.includes(CARRIAGE_RETURN);
  const surrogates = body.includes(BACKSLASH) && (body.includes('\\ud') || body.includes('\\uD'));
  if (!breaks && !surrogates) return body;
  const copy = Buffer.from(body);
  const mended = surrogates && mendSurrogates(copy);
  if (!breaks) return mended ? copy : body;
  for (let i = 0; i < copy.length; i += 1) {
    if (copy[i] === LINE_FEED || copy[i] === CARRIAGE_RETURN) copy[i] = SPACE;
  }
  return copy;
}

/** True when the first and last bytes that are not white space are braces. It was parsed on the way in. */
function isObjectShaped(body: Buffer): boolean {
  let first = 0;
  let last = body.length - 1;
  while (isWhite(body[first])) first += 1;
  while (last > first && isWhite(body[last])) last -= 1;
  return last > first && body[first] === OPEN_BRACE && body[last] === CLOSE_BRACE;
}

function isWhite(byte: number | undefined): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === 9;
}

/** Replaces escapes of lone surrogates in place; true if there were any. */
function mendSurrogates(text: Buffer): boolean {
  let mended = false;
  for (let at = text.indexOf(BACKSLASH); at !== -1; at = text.indexOf(BACKSLASH, at)) {
    const unit = escapedUnit(text, at);
    if (unit < 0xd800 || unit > 0xdfff) {
      at += 2;
      continue;
    }
    const next = unit < 0xdc00 ? escapedUnit(text, at + 6) : 0;
    if (next >= 0xdc00 && next <= 0xdfff) {
      at += 12;
      continue;
    }
    text.write(REPLACEMENT, at + 2, 'latin1');
    mended = true;
    at += 6;
  }
  return mended;
}

/** The code unit of `\uXXXX` at `at`, or 0 when no such escape stands there. */
function escapedUnit(text: Buffer, at: number): number {
  if (text[at] !== BACKSLASH || text[at + 1] !== 117) return 0;
  const unit = Number.parseInt(text.toString('latin1', at + 2, at + 6), 16);
  return Number.isNaN(unit) ? 0 : unit;
}

export type ParsedRecord<R = ArchiveRecord> =
  | { readonly ok: true; readonly record: R; readonly body: Buffer }
  | { readonly ok: false; readonly reason: string };

/** Parses a line without its line break. */
export type ParseRecord<R> = (line: Buffer) => ParsedRecord<R>;

/**
 * Parses a line without its event: `body` has the bytes that were signed, as a view into the line where it has them verbatim.
 * @param line without its line break
 */
export function parseRecord(line: Buffer): ParsedRecord {
  return withBody(line, parseHead(line));
}

/** Content of a JSON string in ASCII, without escapes. */
const TEXT = String.raw`[^"\\\x00-\x1f\x7f-\xff]*`;
const STRING = `"${TEXT}"`;
const MEMBERS = `(?:${STRING}:${STRING}(?:,${STRING}:${STRING})*)?`;
const TEXT_OR_NULL = `(?:null|"(${TEXT})")`;
const PLAIN_HEAD = new RegExp(
  `^\\{"id":"(${TEXT})","source":${STRING},"received_at":"(${TEXT})","event_type":"(${TEXT})"` +
    `,"team_id":${TEXT_OR_NULL},"user_id":${TEXT_OR_NULL},"client_user_id":${TEXT_OR_NULL}` +
    `,"headers":\\{${MEMBERS}\\}(?=,"event":)`,
);
/** Longer heads are rare. */
const PLAIN_HEAD_BYTES = 1024;

/** The envelope of a record, which rows and counts need. */
export type RecordEnvelope = Omit<ArchiveRecord, 'source' | 'headers'>;

/** Parses the same lines as `parseRecord`, in half the time. */
export function parseEnvelope(line: Buffer): ParsedRecord<RecordEnvelope> {
  const found = PLAIN_HEAD.exec(line.toString('latin1', 0, PLAIN_HEAD_BYTES));
  if (found === null) return parseRecord(line);
  const [head, id = '', received_at = '', event_type = '', team, user, clientUser] = found;
  const whose = { team_id: team ?? null, user_id: user ?? null, client_user_id: clientUser ?? null };
  return withBody(line, { record: { id, event_type, received_at, ...whose }, end: head.length });
}

function withBody<R>(line: Buffer, head: { record: R; end: number } | null): ParsedRecord<R> {
  if (head === null) return { ok: false, reason: 'not an archive record' };
  const from = head.end + EVENT_KEY.length - 1;
  const to = line.length - 1;
  if (line[to] !== CLOSE_BRACE || to <= from) return { ok: false, reason: 'the record is cut short' };
  if (line[to - 1] !== QUOTE) return { ok: true, record: head.record, body: line.subarray(from, to) };
  const key = line.lastIndexOf(BASE64_KEY);
  if (key < from) return { ok: false, reason: 'the event is not a JSON object' };
  const encoded = line.toString('latin1', key + BASE64_KEY.length, to - 1);
  if (encoded.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(encoded)) {
    return { ok: false, reason: 'body_base64 is not base64' };
  }
  const body = Buffer.from(encoded, 'base64');
  if (!bodyText(body).equals(line.subarray(from, key))) {
    return { ok: false, reason: 'event and body_base64 disagree' };
  }
  return { ok: true, record: head.record, body };
}

/** The fields before the event, and the offset of the byte after them; null for a line of another format. */
export function parseHead(line: Buffer): { record: ArchiveRecord; end: number } | null {
  const found = line.indexOf(EVENT_KEY);
  if (found === -1) return null;
  const end = found + 1;
  const record = jsonIn(`${line.toString('utf8', 0, end)}}`);
  return isArchiveRecord(record) ? { record, end } : null;
}

const TEXTS: readonly (keyof ArchiveRecord)[] = ['id', 'source', 'received_at', 'event_type'];
const IDS: readonly (keyof ArchiveRecord)[] = ['team_id', 'user_id', 'client_user_id'];

function isArchiveRecord(value: unknown): value is ArchiveRecord {
  return (
    isRecord(value) &&
    TEXTS.every((name) => typeof value[name] === 'string') &&
    IDS.every((name) => value[name] === null || typeof value[name] === 'string') &&
    isRecord(value['headers']) &&
    Object.values(value['headers']).every((header) => typeof header === 'string')
  );
}
