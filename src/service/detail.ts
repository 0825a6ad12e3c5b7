import { isRecord } from '../lib/is-record.ts';
import type { ExistingUser } from './errors.ts';

/** Enough to understand an error, too little to carry a record into a log. */
const LONGEST = 500;

/**
 * One line from the body of an error. `detail` may be a string, an object, a list of validation problems or missing;
 * an answer that is not JSON is its own detail.
 * @param body the parsed body, or its text when it is not JSON
 */
export function detailOf(body: unknown): string {
  const text = describe(isRecord(body) && 'detail' in body ? body['detail'] : body);
  const line = text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  if (line === '') return 'no detail was given';
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

/** The user that a Create User conflict names, inside `detail` or beside it; null when it names none. */
export function existingUserOf(body: unknown): ExistingUser | null {
  if (!isRecord(body)) return null;
  for (const place of [body['detail'], body]) {
    if (!isRecord(place) || typeof place['user_id'] !== 'string') continue;
    const createdOn = place['created_on'];
    return { userId: place['user_id'], createdOn: typeof createdOn === 'string' ? createdOn : null };
  }
  return null;
}

function describe(detail: unknown): string {
  if (typeof detail === 'string') return detail;
  if (detail === undefined || detail === null) return '';
  if (Array.isArray(detail)) return detail.map(problem).join('; ');
  if (isRecord(detail)) {
    for (const key of ['message', 'msg', 'error_message', 'error', 'detail', 'title']) {
      if (typeof detail[key] === 'string' && detail[key] !== '') return detail[key];
    }
  }
  return JSON.stringify(detail);
}

/** `{"loc": ["body", "user_ids", 0], "msg": "not a UUID"}` reads `body.user_ids.0: not a UUID`. */
function problem(item: unknown): string {
  if (!isRecord(item) || !Array.isArray(item['loc'])) return describe(item);
  return `${item['loc'].map(String).join('.')}: ${describe(item['msg'] ?? item['type'])}`;
}
