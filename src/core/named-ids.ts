import { BACKSLASH } from '../lib/json-text.ts';

/**
 * Which ids of users a text names. What an erasure takes out and what intake drops are decided by this one definition, so
 * that nothing that was taken out comes in again. A text names
 * - a UUID wherever it stands, in any case of its letters, with hyphens or as 32 hex digits alone (`urn:uuid:` and braces
 *   are only what stands around it);
 * - another id where it is a whole JSON text, or, when it cannot be taken for an everyday word or number, a word in prose;
 *   in the same case.
 * It is looked at as UTF-8, with each layer of JSON escapes taken off, and also as UTF-16 where it has NUL bytes. Not seen
 * is what is compressed, encrypted or in base64 inside it, and an id percent-encoded, as HTML entities, or with blanks in
 * prose.
 */

const UUID =
  /^(?:urn:uuid:|\{)?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/i;
/** Overlapping ones too. */
const UUIDS = /(?=([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))/gi;
const BARE_UUIDS = /(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/gi;

/** Times escapes are taken off: JSON in JSON doubles its backslashes each time. */
const LAYERS = 8;
/** UTF-16 units; no envelope holds a longer one. */
const LONGEST = 512;

/** The form in which ids are compared: a UUID is the same however it is written, another id in the same letters only. */
export function canonicalId(id: string): string {
  const groups = UUID.exec(id);
  return groups === null ? id : groups.slice(1).join('-').toLowerCase();
}

/** Every id these bytes may name, in the form in which ids are compared; some more than once. */
export function* namedIds(bytes: Buffer): Generator<string> {
  for (const text of textsOf(bytes)) {
    for (const [, uuid = ''] of text.matchAll(UUIDS)) yield uuid.toLowerCase();
    for (const [uuid] of text.matchAll(BARE_UUIDS)) yield canonicalId(uuid);
    yield* quotedIn(text);
    yield* wordsIn(text);
  }
}

/** How an id stands in one of the texts of what names it; a text without any of these does not name it. */
export function marksOf(id: string): readonly string[] {
  const canonical = canonicalId(id);
  if (UUID.test(canonical)) return [canonical, canonical.replaceAll('-', '')];
  return [isWord(id) ? id : `"${id}"`];
}

/** The bytes as text, in each way they may be meant. */
export function* textsOf(bytes: Buffer): Generator<string> {
  yield* layersOf(bytes.toString());
  if (!bytes.includes(0)) return;
  // UTF-16 of either byte order, from either byte on: what surrounds it may be of any length.
  for (const start of [0, 1]) {
    const units = Buffer.from(bytes.subarray(start, bytes.length - ((bytes.length - start) % 2)));
    yield* layersOf(units.toString('utf16le'));
    yield* layersOf(units.swap16().toString('utf16le'));
  }
}

/** The text itself, then with one layer of JSON escapes after the other taken off. */
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

/** By hand, as what follows: a regular expression runs out of stack on a body that is one long run of something. */
function unescape(text: string): string {
  let plain = '';
  let from = 0;
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', from)) {
    let end = at;
    while (text.charCodeAt(end) === BACKSLASH) end += 1;
    plain += text.slice(from, at) + '\\'.repeat((end - at) >>> 1);
    from = end;
    if ((end - at) % 2 === 0 || end === text.length) continue;
    const letter = text[end] ?? '';
    const digits = letter === 'u' ? text.slice(end + 1, end + 5) : '';
    const isUnit = DIGITS.test(digits);
    plain += isUnit ? String.fromCharCode(Number.parseInt(digits, 16)) : (SHORT[letter] ?? letter);
    from = end + (isUnit ? 5 : 1);
  }
  return plain + text.slice(from);
}

/** What stands between two quotes, without its escapes: the strings of JSON, and what is between them. */
function* quotedIn(text: string): Generator<string> {
  let from = -1;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) {
    if (isEscaped(text, at)) continue;
    // An escape takes six units at most.
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

/** Characters that end a word, those that only end a part of one, and those that are no part of it at its ends. */
const BETWEEN_WORDS = '"\'`<>()[]{},;\\';
const BETWEEN_PARTS = ':=/&?#|';
const AT_ENDS = '.:!?*';
const WHITE = /\s/;
const LETTERS_ONLY = /^\p{L}*$/u;
const SHORTEST = 6;

const [INSIDE, PART, WORD] = [0, 1, 2];
/** By code of a character of ASCII. */
const ENDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code);
  if (BETWEEN_WORDS.includes(char) || WHITE.test(char)) return WORD;
  return BETWEEN_PARTS.includes(char) ? PART : INSIDE;
});

/** Words that can be ids, and the parts of addresses and assignments: `user=customer-17`, `/users/customer-17/meals`. */
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

/** What stands there, without the punctuation around it, if it is not an everyday word. */
function* distinct(text: string, from: number, to: number): Generator<string> {
  let [start, end] = [from, to];
  while (start < end && AT_ENDS.includes(text[start] ?? '')) start += 1;
  while (start < end && AT_ENDS.includes(text[end - 1] ?? '')) end -= 1;
  if (end - start < SHORTEST || end - start > LONGEST) return;
  const word = text.slice(start, end);
  if (!LETTERS_ONLY.test(word)) yield word;
}

/** Whether an id is found as a word of prose. */
function isWord(id: string): boolean {
  for (const word of wordsIn(id)) if (word === id) return true;
  return false;
}
