import { CLOSE_BRACE, COLON, COMMA, OPEN_BRACE, QUOTE, skipString } from '../lib/json-text.ts';
import type { RowPlan } from '../warehouse/shape/plan.ts';

/** The members of a record in their order, each where it stands in `RECORD`. */
const NAMES =
  'id source received_at event_type team_id user_id client_user_id headers event body_base64'.split(' ');
export const [RECEIVED_AT, EVENT_TYPE] = [2, 3];
const [TEAM, HEADERS, EVENT] = [4, 7, 8];
const NULL = 'null'.length;

/** Whether rows of this plan have a record's members in the order in which it has them. */
export function isOfRecords({ columns }: RowPlan): boolean {
  return NAMES.every((name, slot) => columns[slot]?.name === name);
}

/**
 * Whether a JSON object with no members but these is a record written as most are, so that reading it as one would find the same:
 * all members in their order, nothing between them, and no escapes but in the event and its headers.
 * @param from of the value of each member; negative for null and for what is not there
 * @param to the end of each, negative for what may have escapes
 */
export function isPlainRecord(bytes: Uint8Array, from: Int32Array, to: Int32Array): boolean {
  let at = 1;
  for (let slot = 0; slot <= EVENT; slot += 1) {
    at += (NAMES[slot] as string).length + '"":'.length;
    const start = from[slot] as number;
    const end = to[slot] as number;
    if (start < 0) {
      if (slot < TEAM || slot >= HEADERS) return false;
      at += NULL;
    } else {
      if (start !== at || (end < 0 && slot < HEADERS)) return false;
      at = Math.abs(end);
    }
    at += 1;
  }
  if (at !== bytes.length || bytes[from[EVENT] as number] !== OPEN_BRACE) return false;
  return isOfTexts(bytes, from[HEADERS] as number);
}

/** Whether the object has nothing but texts in it, with no white space around them. */
function isOfTexts(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== OPEN_BRACE) return false;
  if (bytes[at + 1] === CLOSE_BRACE) return true;
  let i = at;
  do {
    if (bytes[i + 1] !== QUOTE) return false;
    i = Math.abs(skipString(bytes, i + 1));
    if (bytes[i] !== COLON || bytes[i + 1] !== QUOTE) return false;
    i = Math.abs(skipString(bytes, i + 1));
  } while (bytes[i] === COMMA);
  return bytes[i] === CLOSE_BRACE;
}
