import { BACKSLASH } from '../lib/json-text.ts';

/**
 * Which ids of users a text names. Erasures remove, and intake drops, by this one definition, so that nothing that was erased
 * comes in again. A text names
 * - a UUID anywhere, in upper or lower case, with hyphens or as 32 hex digits (`urn:uuid:` and braces are not part of it);
 * - another id where it is a whole JSON string, or, when it is no everyday word or number, a word in prose; in the same case.
 * The text is read as UTF-8, after each layer of JSON escapes is removed, and also as UTF-16 where it has NUL bytes. Not found
 * are ids that are compressed, encrypted, in base64, percent-encoded, HTML entities, or split by blanks in prose.
 */

const UUID =
  /^(?:urn:uuid:|\{)?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/i;
/** Also overlapping ones. */
const UUIDS = /(?=([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))/gi;
const BARE_UUIDS = /(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/gi;

/** How often escapes are removed: JSON in JSON doubles its backslashes each time. */
const LAYERS = 8;
/** UTF-16 units; no envelope has a longer id. */
const LONGEST = 512;

/** The form in which ids are compared: all forms of a UUID are one id, any other id is compared exactly. */
export function canonicalId(id: string): string {
  const groups = UUID.exec(id);
  return groups === null ? id : groups.slice(1).join('-').toLowerCase();
}

/** Every id that these bytes may name, in canonical form; some more than once. */
export function* namedIds(bytes: Buffer): Generator<string> {
  for (const text of textsOf(bytes)) {
    for (const [, uuid = ''] of text.matchAll(UUIDS)) yield uuid.toLowerCase();
    for (const [uuid] of text.matchAll(BARE_UUIDS)) yield canonicalId(uuid);
    yield* quotedIn(text);
    yield* wordsIn(text);
  }
}

/** The forms of an id in `textsOf`: a text without any of them does not name it. */
export function marksOf(id: string): readonly string[] {
  const canonical = canonicalId(id);
  if (UUID.test(canonical)) return [canonical, canonical.replaceAll('-', '')];
  return [isWord(id) ? id : `"${id}"`];
}

/** The bytes as text, in each possible encoding. */
export function* textsOf(bytes: Buffer): Generator<string> {
  yield* layersOf(bytes.toString());
  if (!bytes.includes(0)) return;
  // UTF-16 of either byte order, from an even or an odd byte on: the bytes before it may be of any length.
  for (const start of [0, 1]) {
    const units = Buffer.from(bytes.subarray(start, bytes.length - ((bytes.length - start) % 2)));
    yield* layersOf(units.toString('utf16le'));
    yield* layersOf(units.swap16().toString('utf16le'));
  }
}

/** The text, then the text after each layer of JSON escapes is removed. */
function* layersOf(text: string): Generator<string> {
  yield text;
  let last = text;
  for (let layer = 0; layer < LAYERS && last.includes('\\'); layer += 1) {
    const next = unescape(last);
    if (next === last) return;
    yield next;
    last = next;
  }
}

const SHORT: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const DIGITS = /^[0-9a-f]{4}$/i;

/** By hand, like the functions below: a regular expression runs out of stack on a long run of one character. */
function unescape(text: string): string {
  let plain = '';
  let from = 0;
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', from)) {
    let end = at;
    while (text.charCodeAt(end) === BACKSLASH) end += 1;
    plain += text.slice(from, at) + '\\'.repeat((end - at) >>> 1);
    from = end;
    if ((end - at) % 2 === 0 || end === text.length) continue;
    const escaped = text[end] ?? '';
    const digits = escaped === 'u' ? text.slice(end + 1, end + 5) : '';
    const isUnit = DIGITS.test(digits);
    plain += isUnit ? String.fromCharCode(Number.parseInt(digits, 16)) : (SHORT[escaped] ?? escaped);
    from = end + (isUnit ? 5 : 1);
  }
  return plain + text.slice(from);
}

/** The texts between two quotes, without escapes: the strings of JSON, and what is between them. */
function* quotedIn(text: string): Generator<string> {
  let from = -1;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) {
    if (isEscaped(text, at)) continue;
    // An escape has six units at most.
    if (from !== -1 && at > from && at - from <= LONGEST * 6) {
      const quoted = text.slice(from, at);
      const plain = quoted.includes('\\') ? unescape(quoted) : quoted;
      if (plain.length <= LONGEST) yield plain;
    }
    from = at + 1;
  }
}

function isEscaped(text: string, at: number): boolean {
  let from = at;
  while (text.charCodeAt(from - 1) === BACKSLASH) from -= 1;
  return (at - from) % 2 === 1;
}

/** Characters that end a word, characters that end a part of one, and punctuation that is removed at its ends. */
const BETWEEN_WORDS = '"\'`<>()[]{},;\\';
const BETWEEN_PARTS = ':=/&?#|';
const AT_ENDS = '.:!?*';
const WHITE = /\s/;
const ALPHABETIC = /^\p{L}*$/u;
const SHORTEST = 6;

const [INSIDE, PART, WORD] = [0, 1, 2];
/** By ASCII code. */
const ENDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code);
  if (BETWEEN_WORDS.includes(char) || WHITE.test(char)) return WORD;
  return BETWEEN_PARTS.includes(char) ? PART : INSIDE;
});

/** Words that can be ids, also inside addresses and assignments: `user=customer-17`, `/users/customer-17/meals`. */
function* wordsIn(text: string): Generator<string> {
  let word = 0;
  let part = 0;
  let isMade = false;
  for (let at = 0; at <= text.length; at += 1) {
    const code = text.charCodeAt(at);
    const ends =
      at === text.length ? WORD : code < 128 ? ENDS[code] : WHITE.test(text[at] ?? '') ? WORD : INSIDE;
    if (ends === INSIDE) continue;
    if (at - part >= SHORTEST) yield* distinct(text, part, at);
    part = at + 1;
    if (ends !== WORD) {
      isMade = true;
      continue;
    }
    if (isMade && at - word >= SHORTEST) yield* distinct(text, word, at);
    isMade = false;
    word = at + 1;
  }
}

/** The word, without punctuation around it, unless it is an everyday word. */
function* distinct(text: string, from: number, to: number): Generator<string> {
  let [start, end] = [from, to];
  while (start < end && AT_ENDS.includes(text[start] ?? '')) start += 1;
  while (start < end && AT_ENDS.includes(text[end - 1] ?? '')) end -= 1;
  if (end - start < SHORTEST || end - start > LONGEST) return;
  const word = text.slice(start, end);
  if (!ALPHABETIC.test(word)) yield word;
}

/** Whether an id is found as a word of prose. */
function isWord(id: string): boolean {
  for (const word of wordsIn(id)) if (word === id) return true;
  return false;
}
