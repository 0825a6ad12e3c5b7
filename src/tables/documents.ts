import { BACKSLASH, membersOf, OPEN_BRACE, OPEN_BRACKET, skipValue, skipWhite } from '../lib/json-text.ts';
import type { EventOrigin } from './definition.ts';
import type { TableEntry } from './tables.ts';

/** @param entry of a table that is made of events */
export function originOf({ definition: { name, events } }: TableEntry): EventOrigin {
  if (events === undefined) throw new TypeError(`${name} is not made of events`);
  return events;
}

/**
 * The documents in a body, which are objects; null in place of one that is missing or something else.
 * @throws JsonFault when the body is not JSON up to there
 */
export function documentsIn(body: Buffer, { member, each }: EventOrigin): readonly (Buffer | null)[] {
  const found = memberOf(body, member ?? '');
  const documents = each === 'array' && found?.[0] === OPEN_BRACKET ? itemsOf(found) : [found];
  return documents.map((document) => (document?.[0] === OPEN_BRACE ? document : null));
}

/** The bytes of a member of the object that `bytes` are; of the last one when it is repeated. */
export function memberOf(bytes: Buffer, name: string): Buffer | null {
  const plain = Buffer.from(JSON.stringify(name));
  let found: Buffer | null = null;
  for (const { name: key, value } of membersOf(bytes, 0))
    if (isName(bytes.subarray(...key), plain)) found = bytes.subarray(...value);
  return found;
}

/** @param plain the name in quotes, without escapes */
function isName(key: Buffer, plain: Buffer): boolean {
  if (!key.includes(BACKSLASH)) return key.equals(plain);
  return JSON.parse(key.toString()) === JSON.parse(plain.toString());
}

/** The items of an array that has been stepped over already. */
function itemsOf(array: Buffer): Buffer[] {
  const items: Buffer[] = [];
  for (let i = skipWhite(array, 1); i < array.length - 1;) {
    const end = skipValue(array, i, 1);
    items.push(array.subarray(i, end));
    // After the comma, or after the closing bracket.
    i = skipWhite(array, skipWhite(array, end) + 1);
  }
  return items;
}
