import { BACKSLASH, CLOSE_BRACE, QUOTE } from '../lib/json-text.ts';
import { isUuid } from '../lib/uuid.ts';
import { lowerUuid, type Selection } from './selection.ts';

const TO_LOWER = 0x20;
const ID = Buffer.from('{"id":"');
const SOURCE = Buffer.from(',"source":"');
const RECEIVED = Buffer.from(',"received_at":"');
const TYPE = Buffer.from(',"event_type":"');
const TEAM = Buffer.from(',"team_id":');
const USER = Buffer.from(',"user_id":');
const ISO_LENGTH = 24;

/** The bytes of an id in a line. */
interface WantedId {
  readonly bytes: Buffer;
  readonly anyCase: boolean;
}

/** True when the line between the two offsets starts as a record that does not match. */
export type PassesOver = (line: Buffer, from?: number, to?: number) => boolean;

/**
 * Decides by the first bytes of an archive record that a selection does not match, without decoding a field: most lines
 * of most replays end here. It leaves to the parser what is not exactly as the files sink writes it.
 */
export function passesOverBy(selection: Selection): PassesOver {
  const types = selection.types.map((prefix) => Buffer.from(prefix));
  const [teams, users] = [selection.teams.map(wantedId), selection.users.map(wantedId)];
  const since = selection.since === null ? null : new Date(selection.since).toISOString();
  const until = selection.until === null ? null : new Date(selection.until).toISOString();
  /** ISO times of one form sort as their texts. */
  const isOutOfTime = (line: Buffer, from: number, to: number): boolean => {
    if ((since === null && until === null) || to - from !== ISO_LENGTH) return false;
    const time = line.toString('latin1', from, to);
    return (since !== null && time < since) || (until !== null && time >= until);
  };
  return (line, from = 0, to = line.length) => {
    if (to === from || line[to - 1] !== CLOSE_BRACE) return false;
    let at = after(line, endOfText(line, after(line, from, ID), to), SOURCE);
    const received = after(line, endOfText(line, at, to), RECEIVED);
    at = endOfText(line, received, to);
    if (at < 0) return false;
    if (isOutOfTime(line, received, at - 1)) return true;
    const type = after(line, at, TYPE);
    at = endOfText(line, type, to);
    if (at < 0) return false;
    if (types.length > 0 && !types.some((prefix) => startsWith(line, type, at - 1, prefix))) return true;
    if (teams.length === 0 && users.length === 0) return false;
    const team = after(line, at, TEAM);
    at = endOfValue(line, team, to);
    if (at < 0) return false;
    if (teams.length > 0 && !isAmong(line, team, at, teams)) return true;
    if (users.length === 0) return false;
    const user = after(line, at, USER);
    at = endOfValue(line, user, to);
    return at > 0 && !isAmong(line, user, at, users);
  };
}

function wantedId(id: string): WantedId {
  return { bytes: Buffer.from(lowerUuid(id)), anyCase: isUuid(id) };
}

/** The index after `literal` if it stands at `at`, else -1; a negative `at` stays negative. */
function after(line: Buffer, at: number, literal: Buffer): number {
  if (at < 0) return -1;
  for (let i = 0; i < literal.length; i += 1) if (line[at + i] !== literal[i]) return -1;
  return at + literal.length;
}

/** Whether the line begins as the files sink begins every line; if so, a fault in it is damage. */
export function isRecord(line: Buffer): boolean {
  return after(line, endOfText(line, after(line, 0, ID)), SOURCE) > 0;
}

/** The index after the quote that ends a text without escapes before `to`, else -1. */
function endOfText(line: Buffer, at: number, to = line.length): number {
  if (at < 0) return -1;
  for (let i = at; i < to; i += 1) {
    const byte = line[i];
    if (byte === QUOTE) return i + 1;
    if (byte === BACKSLASH) return -1;
  }
  return -1;
}

/** The index after a text in quotes or `null`, else -1. */
function endOfValue(line: Buffer, at: number, to: number): number {
  if (at < 0) return -1;
  return line[at] === QUOTE ? endOfText(line, at + 1, to) : after(line, at, NULL);
}

const NULL = Buffer.from('null');

function startsWith(line: Buffer, from: number, to: number, prefix: Buffer): boolean {
  return to - from >= prefix.length && after(line, from, prefix) >= 0;
}

/** @param from of the value, its quote included; `null` is never among them */
function isAmong(line: Buffer, from: number, to: number, wanted: readonly WantedId[]): boolean {
  return wanted.some(({ bytes, anyCase }) => {
    if (to - from - 2 !== bytes.length) return false;
    for (let i = 0; i < bytes.length; i += 1) {
      const byte = line[from + 1 + i] as number;
      if (byte !== bytes[i] && !(anyCase && (byte | TO_LOWER) === bytes[i])) return false;
    }
    return true;
  });
}
