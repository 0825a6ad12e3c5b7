import { isUtf8 } from 'node:buffer';
import { asBuffer, type ByteWriter } from '../lib/byte-writer.ts';
import { BACKSLASH, QUOTE } from '../lib/json-text.ts';
import { jsonIn } from '../lib/parsed.ts';
import type { RowColumns } from '../parquet/row-columns.ts';
import { text, timestamp, type Column } from '../warehouse/definition.ts';

const SPACE = 32;

/**
 * The columns of a record in a Parquet file. A row is its line, byte for byte, taken apart: `headers` is JSON text, and `event`
 * the text that stands in the line, null where that is `null`. A line that the other columns could not give back exactly, because
 * it is damaged, stands in `line_base64` alone.
 */
export const RECORD_COLUMNS: readonly Column[] = [
  text('id', 'delivery id of the event'),
  text('source', 'where the event came in'),
  timestamp('received_at', 'when the event came in'),
  text('event_type', 'type of the event, open list'),
  text('team_id', 'team of the event'),
  text('user_id', 'user of the event'),
  text('client_user_id', "the team's id of the user"),
  text('headers', 'headers that were signed, a JSON object', { bounds: false }),
  text('event', 'the body, JSON', { bounds: false }),
  text('body_base64', 'the exact bytes of a body that cannot stand in a line', { bounds: false }),
  text('line_base64', 'a line that is no record', { bounds: false }),
];

const [RECEIVED_AT, TEAM, HEADERS, EVENT, BODY, LINE] = [2, 4, 7, 8, 9, 10] as const;

/** What stands in front of each field up to the headers, and of the rest. */
const KEYS = RECORD_COLUMNS.slice(0, HEADERS).map(({ name }, at) =>
  Buffer.from(`${at === 0 ? '{' : ','}"${name}":`),
);
const HEADERS_KEY = Buffer.from(',"headers":');
/** No quote stands bare inside a JSON string, so the first one is the one. */
const EVENT_KEY = Buffer.from('},"event":');
const BODY_KEY = Buffer.from(',"body_base64":');
const NULL = Buffer.from('null');
const TIME_LENGTH = '"2026-11-22T00:00:00.000Z"'.length;

/** Where the fields of a line begin and end, by column, their quotes included. */
interface Fields {
  readonly from: Int32Array;
  /** Negative for a text with escapes; 0 where there is no value. */
  readonly to: Int32Array;
}

/** Made once: a line's are read before those of the next. */
const FIELDS: Fields = {
  from: new Int32Array(RECORD_COLUMNS.length),
  to: new Int32Array(RECORD_COLUMNS.length),
};

/**
 * Adds a line as a row.
 * @param line without its line feed; never changed afterwards
 */
export function addRecord(rows: RowColumns, line: Buffer): void {
  if (findFields(line)) {
    const { from, to } = FIELDS;
    for (let column = 0; column < LINE; column += 1) {
      const [start, end] = [from[column] as number, to[column] as number];
      if (end > 0) rows.value(column, line, start, end);
      else if (end < 0) {
        // As it is, with every character: escapes are the line's, and not the text's.
        const bare = Buffer.from(`"${JSON.parse(line.toString('utf8', start, -end))}"`);
        rows.value(column, bare, 0, bare.length);
      }
    }
  } else {
    const encoded = Buffer.from(`"${line.toString('base64')}"`);
    rows.value(LINE, encoded, 0, encoded.length);
  }
  rows.end();
}

/** False for a line that its fields would not give back. */
function findFields(line: Buffer): boolean {
  if (!isUtf8(line)) return false;
  const { from, to } = FIELDS;
  let at = 0;
  for (const [column, key] of KEYS.entries()) {
    at = after(line, at, key);
    if (at < 0) return false;
    from[column] = at;
    if (line[at] === QUOTE) {
      to[column] = endOfText(line, at);
      at = Math.abs(to[column]);
      if (at === 0) return false;
    } else {
      to[column] = 0;
      at = column < TEAM ? -1 : after(line, at, NULL);
      if (at < 0) return false;
    }
  }
  if (!isTime(line, from[RECEIVED_AT] as number, to[RECEIVED_AT] as number)) return false;
  at = after(line, at, HEADERS_KEY);
  const event = at < 0 ? -1 : line.indexOf(EVENT_KEY, at);
  if (event === -1) return false;
  setBare(HEADERS, at, event + 1);
  return findBody(line, event + EVENT_KEY.length);
}

/** @param from of the event's own bytes */
function findBody(line: Buffer, from: number): boolean {
  const { to } = FIELDS;
  let end = line.length - 1;
  if (line[end] !== 0x7d || end <= from) return false;
  to[BODY] = 0;
  const key = line[end - 1] === QUOTE ? line.lastIndexOf(BODY_KEY) : -1;
  if (key >= from && isBase64(line, key + BODY_KEY.length, end)) {
    FIELDS.from[BODY] = key + BODY_KEY.length;
    to[BODY] = end;
    end = key;
  }
  if (after(line, from, NULL) === end) to[EVENT] = 0;
  else setBare(EVENT, from, end);
  return true;
}

/** A text that stands there without quotes: the bytes around it take their place. */
function setBare(column: number, from: number, to: number): void {
  FIELDS.from[column] = from - 1;
  FIELDS.to[column] = to + 1;
}

/** The index after `literal` if it stands at `at`, else -1. */
function after(line: Buffer, at: number, literal: Buffer): number {
  for (let i = 0; i < literal.length; i += 1) if (line[at + i] !== literal[i]) return -1;
  return at + literal.length;
}

/** The index after the text that begins at `at`, negative when it has escapes; 0 when it is not as it is written here. */
function endOfText(line: Buffer, at: number): number {
  let escapes = false;
  for (let i = at + 1; i < line.length; i += 1) {
    const byte = line[i] as number;
    if (byte === QUOTE) {
      if (!escapes) return i + 1;
      return isOurs(line.toString('utf8', at, i + 1)) ? -(i + 1) : 0;
    }
    if (byte < SPACE) return 0;
    if (byte !== BACKSLASH) continue;
    escapes = true;
    i += 1;
  }
  return 0;
}

/** Whether a text with escapes is written as we write it. */
function isOurs(json: string): boolean {
  const value = jsonIn(json);
  return typeof value === 'string' && value.isWellFormed() && JSON.stringify(value) === json;
}

function isTime(line: Buffer, from: number, to: number): boolean {
  if (to - from !== TIME_LENGTH) return false;
  const said = line.toString('latin1', from + 1, to - 1);
  const time = Date.parse(said);
  return !Number.isNaN(time) && new Date(time).toISOString() === said;
}

function isBase64(line: Buffer, from: number, to: number): boolean {
  return /^"[A-Za-z0-9+/]*={0,2}"$/.test(line.toString('latin1', from, to));
}

/** Values of one row as they are stored, by column: texts as bytes, a time in microseconds. */
export type StoredRow = readonly unknown[];

/** Adds the line that a row was made of, with its line feed. @throws Error when it was made of none */
export function appendRecord(out: ByteWriter, row: StoredRow): void {
  const damaged = row[LINE];
  if (damaged instanceof Uint8Array) {
    out.append(Buffer.from(asBuffer(damaged).toString('latin1'), 'base64'));
    out.append(LINE_FEED);
    return;
  }
  for (const [column, key] of KEYS.entries()) {
    out.append(key);
    const value = row[column];
    if (typeof value === 'bigint') out.append(Buffer.from(`"${timeOf(value)}"`));
    else if (value instanceof Uint8Array) appendText(out, value);
    else if (column >= TEAM) out.append(NULL);
    else throw new Error(`a record without ${RECORD_COLUMNS[column]?.name ?? ''}`);
  }
  const [headers, event, body] = [row[HEADERS], row[EVENT], row[BODY]];
  if (!(headers instanceof Uint8Array)) throw new Error('a record without headers');
  out.append(HEADERS_KEY);
  out.append(headers.subarray(0, -1));
  out.append(EVENT_KEY);
  out.append(event instanceof Uint8Array ? event : NULL);
  if (body instanceof Uint8Array) {
    out.append(BODY_KEY);
    appendText(out, body);
  }
  out.append(END);
}

const LINE_FEED = Buffer.from('\n');
const END = Buffer.from('}\n');
const QUOTES = Buffer.from('"');

function appendText(out: ByteWriter, value: Uint8Array): void {
  if (value.some((byte) => byte < SPACE || byte === QUOTE || byte === BACKSLASH)) {
    out.append(Buffer.from(JSON.stringify(asBuffer(value).toString())));
    return;
  }
  out.append(QUOTES);
  out.append(value);
  out.append(QUOTES);
}

/** The last time that was asked for: events that came together are side by side. */
const known = { micros: -1n, text: '' };

/** @param micros since the epoch. @throws RangeError for what is no time */
function timeOf(micros: bigint): string {
  if (micros !== known.micros) {
    known.text = new Date(Number(micros / 1000n)).toISOString();
    known.micros = micros;
  }
  return known.text;
}
