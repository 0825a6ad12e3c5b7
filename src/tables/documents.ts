import {
  BACKSLASH,
  JsonFault,
  membersOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipValue,
  skipWhite,
} from '../lib/json-text.ts';
import type { EventOrigin } from './definition.ts';

/**
 * The documents in a body. Each is an object; null stands for one that is missing or is something else.
 * @throws JsonFault when the body is not JSON up to there
 */
export function documentsIn(body: Buffer, { member, each }: EventOrigin): readonly (Buffer | null)[] {
  const found = memberOf(body, member ?? '');
  const documents = each === 'array' && found?.[0] === OPEN_BRACKET ? itemsOf(found) : [found];
  return documents.map((document) => (document?.[0] === OPEN_BRACE ? document : null));
}

/** The bytes of a member of the object in `bytes`; the last one counts when it is repeated. @throws JsonFault */
export function memberOf(bytes: Buffer, name: string): Buffer | null {
  const plain = Buffer.from(JSON.stringify(name));
  let found: Buffer | null = null;
  for (const { name: key, value } of membersOf(bytes, 0))
    if (isName(bytes.subarray(...key), plain)) found = bytes.subarray(...value);
  return found;
}

/** As `memberOf`; null also when the bytes are not JSON up to there. */
export function memberIfJson(bytes: Buffer, name: string): Buffer | null {
  try {
    return memberOf(bytes, name);
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return null;
  }
}

/** @param plain the name in quotes, without escapes */
function isName(key: Buffer, plain: Buffer): boolean {
  if (!key.includes(BACKSLASH)) return key.equals(plain);
  return JSON.parse(key.toString()) === JSON.parse(plain.toString());
}

/** The items of an array that is known to be valid. */
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

/**
 * The documents of an answer that holds several by name under one member: `{"user_id":1,"provider":{"a":{"x":2}}}` is
 * `{"user_id":1,"provider":"a","x":2}`. An answer that is one document, or is not JSON, is returned as it is.
 */
export function unfolded(answer: Buffer, member: string): readonly Buffer[] {
  try {
    return documentsUnder(answer, member) ?? [answer];
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return [answer];
  }
}

/** Null when the member holds no objects. @throws JsonFault */
function documentsUnder(answer: Buffer, member: string): Buffer[] | null {
  if (skipValue(answer, 0, 1) !== answer.length) return null;
  let at = -1;
  const beside: Buffer[] = [];
  for (const { name, value } of membersOf(answer, 0)) {
    const isMember = JSON.parse(answer.toString('utf8', ...name)) === member;
    if (isMember) [at] = value;
    else beside.push(answer.subarray(name[0], value[1]));
  }
  if (at < 0 || answer[at] !== OPEN_BRACE) return null;
  const documents: Buffer[] = [];
  for (const { name, value } of membersOf(answer, at)) {
    if (answer[value[0]] !== OPEN_BRACE) return null;
    const own = answer.subarray(value[0] + 1, value[1] - 1);
    const parts = [...beside, Buffer.from(`${JSON.stringify(member)}:${answer.toString('utf8', ...name)}`)];
    if (own.toString().trim() !== '') parts.push(own);
    documents.push(Buffer.from(`{${parts.join(',')}}`));
  }
  return documents;
}
