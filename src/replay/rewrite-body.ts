import {
  BACKSLASH,
  COLON,
  OPEN_BRACE,
  QUOTE,
  JsonFault,
  skipString,
  skipValue,
  skipWhite,
  unexpected,
} from '../lib/json-text.ts';

/**
 * The new text for a string, or the text itself.
 * @param member the name of the member it stands in, also inside its array; null for a name
 */
export type Rename = (text: string, member: string | null) => string;

/**
 * A body with some of its strings replaced, names of members among them. Every other byte stays as it is.
 * @throws JsonFault when it is no JSON object; its message holds nothing of the body but one byte
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
