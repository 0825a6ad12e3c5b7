import { createHmac } from 'node:crypto';
import type { Event } from '../core/event.ts';
import {
  BACKSLASH,
  COLON,
  JsonFault,
  OPEN_BRACE,
  QUOTE,
  skipString,
  skipValue,
  skipWhite,
  unexpected,
} from '../lib/json-text.ts';
import { isUuid, uuidOfHash } from '../lib/uuid.ts';
import { lowerUuid } from './selection.ts';

export interface PseudonymiserOptions {
  /** New ids by user. */
  readonly users: ReadonlyMap<string, string>;
  /** With a key every team, user and client user gets a pseudonym, the same for the same key. */
  readonly key: Buffer | null;
  /** Names of the members with ids, at any level of a body. */
  readonly fields: { readonly team: string; readonly user: string; readonly clientUser: string };
}

type Kind = 'team' | 'user' | 'clientUser';

const ANY_UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/**
 * Returns a function that gives events other ids, in the envelope and in the body: in whole strings, for UUIDs also inside longer
 * ones, and with a key in every string of a member that is named like an id. The event id stays; the signature headers, which no
 * longer match, are removed. This hides whom an event is about from readers who know ids, and nothing else. The function throws
 * a JsonFault when the body is not a JSON object.
 */
export function pseudonymiserOf({ key, fields, ...given }: PseudonymiserOptions): (event: Event) => Event {
  if (key === null && given.users.size === 0) return (event) => event;
  const users = new Map(Array.from(given.users, ([from, to]) => [lowerUuid(from), to]));
  const kinds = new Map<string, Kind>([
    [fields.team, 'team'],
    [fields.user, 'user'],
    [`${fields.user}s`, 'user'],
    [fields.clientUser, 'clientUser'],
  ]);
  return (event) => {
    const own = key === null ? users : ownNames(event, users, key);
    const nameOf = (id: string): string | undefined => {
      const canonical = lowerUuid(id);
      return own.get(canonical) ?? users.get(canonical);
    };
    const body = rewriteBody(event.body, (text, member) => {
      const name = nameOf(text);
      if (name !== undefined) return name;
      const kind = member === null ? undefined : kinds.get(member);
      if (kind !== undefined && text !== '' && key !== null) return pseudonym(kind, text, key);
      return text.length > 36 ? text.replaceAll(ANY_UUID, (uuid) => nameOf(uuid) ?? uuid) : text;
    });
    const renamed = (id: string | null): string | null => (id === null ? null : (nameOf(id) ?? id));
    const team = renamed(event.team);
    const user = renamed(event.user);
    const clientUser = renamed(event.clientUser);
    const isSame =
      body === event.body && team === event.team && user === event.user && clientUser === event.clientUser;
    return isSame ? event : { ...event, team, user, clientUser, headers: {}, body };
  };
}

function ownNames(
  { team, user, clientUser }: Event,
  users: ReadonlyMap<string, string>,
  key: Buffer,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  // The user last: its pseudonym is used where two ids are the same text.
  for (const [kind, id] of [
    ['team', team],
    ['clientUser', clientUser],
    ['user', user],
  ] as const) {
    if (id === null || id === '') continue;
    const canonical = lowerUuid(id);
    names.set(canonical, users.get(canonical) ?? pseudonym(kind, id, key));
  }
  return names;
}

/** A UUID (version 8) for a UUID, else a text, so that checks of ids in other systems accept it. */
function pseudonym(kind: Kind, id: string, key: Buffer): string {
  const mac = createHmac('sha256', key)
    .update(`${kind}\0${lowerUuid(id)}`)
    .digest();
  return isUuid(id) ? uuidOfHash(mac) : `pseudonym-${mac.toString('hex', 0, 16)}`;
}

/**
 * The new text for a string, or the text itself.
 * @param member the name of the member it stands in, also inside its array; null for a name
 */
export type Rename = (text: string, member: string | null) => string;

/**
 * Replaces strings and names of members in a body. All other bytes stay.
 * @throws JsonFault when it is not a JSON object; its message has at most one byte of the body
 */
export function rewriteBody(body: Buffer, rename: Rename): Buffer {
  checkObject(body);
  const pieces: Buffer[] = [];
  let copied = 0;
  let member: string | null = null;
  for (let at = body.indexOf(QUOTE); at !== -1;) {
    const end = Math.abs(skipString(body, at));
    const text = textOf(body, at, end);
    const isName = body[skipWhite(body, end)] === COLON;
    const renamed = rename(text, isName ? null : member);
    if (isName) member = text;
    if (renamed !== text) {
      pieces.push(body.subarray(copied, at), Buffer.from(JSON.stringify(renamed)));
      copied = end;
    }
    at = body.indexOf(QUOTE, end);
  }
  return pieces.length === 0 ? body : Buffer.concat([...pieces, body.subarray(copied)]);
}

function checkObject(body: Buffer): void {
  const from = skipWhite(body, 0);
  if (body[from] !== OPEN_BRACE) throw new JsonFault('syntax', from, 'not a JSON object');
  const end = skipWhite(body, skipValue(body, from, 0));
  if (end !== body.length) throw unexpected(body, end);
}

function textOf(body: Buffer, from: number, end: number): string {
  const inside = body.subarray(from + 1, end - 1);
  if (!inside.includes(BACKSLASH)) return inside.toString();
  return JSON.parse(body.toString('utf8', from, end)) as string;
}
