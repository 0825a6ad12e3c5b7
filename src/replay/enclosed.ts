import { isRecord } from '../lib/parsed.ts';
import { OPEN_BRACE, skipWhite } from '../lib/json-text.ts';
import { memberOf } from '../tables/documents.ts';

/** JSON Pointers (RFC 6901) through the objects of a document. */
export interface EventPointers {
  /** The event: an object, or its JSON as text or base64. `''` is the whole document. */
  readonly body: string;
  readonly id: string | null;
  /** Used for a body without a type. */
  readonly type: string | null;
  readonly time: string | null;
}

/** The event that a document encloses. @throws Error when a pointer leads to nothing of its kind */
export function enclosedIn(document: Buffer, { body, id, type, time }: EventPointers) {
  const value = valueAt(document, body);
  return {
    body: value[0] === OPEN_BRACE ? value : bodyIn(textAt(document, body), body),
    id: id === null ? null : textAt(document, id),
    known: type === null ? {} : { type: textAt(document, type) },
    receivedAt: time === null ? null : timeOf(textAt(document, time), time),
  };
}

/** @throws RangeError */
export function jsonPointer(text: string): string {
  if (/^(?:\/(?:[^~]|~[01])*)?$/.test(text)) return text;
  throw new RangeError('must be a JSON Pointer, such as /payload or /message/data');
}

const IDS = /\/(?:(?:msg|message|event|webhook|svix)?[-_]?id|idempotency[-_]?key)$/i;
const TIMES = /\/(?:time(?:stamp)?|(?:created|received|publish(?:ed)?|event|sent)[-_]?(?:at|time))$/i;
const DEEPEST = 3;

/** Where the event in a document is; null when no part of it is one. */
export function findEnclosed(document: Buffer, isEvent: (body: Buffer) => boolean): EventPointers | null {
  let places: Place[] = [];
  try {
    places = placesIn(JSON.parse(document.toString()));
  } catch {
    return null;
  }
  const isBody = ([body]: Place): boolean => {
    try {
      return isEvent(enclosedIn(document, { body, id: null, type: null, time: null }).body);
    } catch {
      return false;
    }
  };
  const [body] = places.find(isBody) ?? [];
  if (body === undefined) return null;
  const named = (names: RegExp): string | null =>
    places.find(
      ([at, value]) => typeof value !== 'object' && names.test(at) && !at.startsWith(`${body}/`),
    )?.[0] ?? null;
  return { body, id: named(IDS), type: null, time: named(TIMES) };
}

type Place = readonly [pointer: string, value: unknown];

/** All members, those of an object before what they hold. */
function placesIn(value: unknown, pointer = '', depth = 1): Place[] {
  if (!isRecord(value) || depth > DEEPEST) return [];
  const members = Object.entries(value).map(([name, each]): Place => {
    return [`${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, each];
  });
  return [...members, ...members.flatMap(([at, each]) => placesIn(each, at, depth + 1))];
}

function valueAt(document: Buffer, pointer: string): Buffer {
  let value: Buffer | null = document;
  for (const step of pointer.split('/').slice(1)) {
    value = memberOf(value, step.replaceAll('~1', '/').replaceAll('~0', '~'));
    if (value === null) throw new Error(`nothing is at ${pointer}`);
  }
  return value;
}

function bodyIn(text: string, pointer: string): Buffer {
  const found = [Buffer.from(text), Buffer.from(text, 'base64')].find(
    (body) => body[skipWhite(body, 0)] === OPEN_BRACE,
  );
  if (found === undefined) throw new Error(`no event is at ${pointer}`);
  return found;
}

function textAt(document: Buffer, pointer: string): string {
  const value: unknown = JSON.parse(valueAt(document, pointer).toString());
  if ((typeof value === 'string' && value !== '') || typeof value === 'number') return String(value);
  throw new Error(`no text is at ${pointer}`);
}

/** A number is of seconds, or of milliseconds where it is too large for that. */
const MOST_SECONDS = 1e11;

function timeOf(text: string, pointer: string): number {
  const count = Number(text);
  const at = Number.isNaN(count) ? Date.parse(text) : Math.round(count * (count < MOST_SECONDS ? 1000 : 1));
  if (Math.abs(at) <= 8.64e15) return at;
  throw new Error(`no time is at ${pointer}`);
}
