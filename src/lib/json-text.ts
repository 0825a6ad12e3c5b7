/**
 * Steps over JSON text as bytes, and checks it strictly (RFC 8259); builds no value. Each function takes the index of a value's first
 * byte and returns the index after its last. A byte past the end is `undefined` and matches nothing.
 */

/** Most levels of nesting; deeper text is refused before it exhausts the stack. */
export const DEEPEST = 200;

/** The text is not JSON, or nested too deeply. */
export class JsonFault extends Error {
  readonly kind: 'syntax' | 'depth';
  /** Index of the unexpected byte. */
  readonly at: number;

  constructor(kind: 'syntax' | 'depth', at: number, message: string) {
    super(message);
    this.name = 'JsonFault';
    this.kind = kind;
    this.at = at;
  }
}

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const MINUS = 0x2d;
export const PLUS = 0x2b;
export const POINT = 0x2e;
export const ZERO = 0x30;
export const NINE = 0x39;
const LOWER_E = 0x65;
/** First byte of `null`. */
export const LOWER_N = 0x6e;
const LOWER_U = 0x75;
const SLASH = 0x2f;
/** A number of so many characters without an exponent is finite as a double. */
export const SURELY_FINITE = 300;
const CASE = 0x20;

/** True while the text stepped over is canonical; see `skipJson`. */
let isCanonical = true;

export function skipWhite(bytes: Uint8Array, at: number): number {
  let i = at;
  let c = bytes[i] as number;
  if (c > 0x20) return i;
  while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) c = bytes[(i += 1)] as number;
  isCanonical = false;
  return i;
}

/**
 * As `skipValue`, but negated when the text may not be canonical: it has white space, an unneeded escape, or a number that may be
 * infinite as a double.
 */
export function skipJson(bytes: Uint8Array, at: number, depth: number): number {
  isCanonical = true;
  const end = skipValue(bytes, at, depth);
  return isCanonical ? end : -end;
}

/** @throws JsonFault */
export function skipValue(bytes: Uint8Array, at: number, depth: number): number {
  const c = bytes[at] as number;
  if (c === QUOTE) return Math.abs(skipString(bytes, at));
  if (c === OPEN_BRACE) return skipObject(bytes, at, depth);
  if (c === OPEN_BRACKET) return skipArray(bytes, at, depth);
  return skipScalar(bytes, at);
}

/** A number, `true`, `false` or `null`. */
export function skipScalar(bytes: Uint8Array, at: number): number {
  switch (bytes[at] ?? 0) {
    case 0x74:
      return skipWord(bytes, at, TRUE);
    case 0x66:
      return skipWord(bytes, at, FALSE);
    case LOWER_N:
      return skipWord(bytes, at, NULL);
    default:
      return skipNumber(bytes, at);
  }
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

function skipWord(bytes: Uint8Array, at: number, word: Uint8Array): number {
  for (let i = 0; i < word.length; i += 1) if (bytes[at + i] !== word[i]) throw unexpected(bytes, at + i);
  return at + word.length;
}

/** The index after the closing quote, negated when there are escapes inside. */
export function skipString(bytes: Uint8Array, at: number): number {
  let i = at + 1;
  let c = bytes[i] as number;
  while (c >= 0x20 && c !== QUOTE && c !== BACKSLASH) c = bytes[(i += 1)] as number;
  if (c === QUOTE) return i + 1;
  return -skipEscapedString(bytes, i);
}

/** @param from index of the first backslash in a string, or of an invalid byte */
function skipEscapedString(bytes: Uint8Array, from: number): number {
  let i = from;
  for (;;) {
    const c = bytes[i] as number;
    if (c === QUOTE) return i + 1;
    if (c === BACKSLASH) i = skipEscape(bytes, i + 1);
    else if (c >= 0x20) i += 1;
    else throw unexpected(bytes, i);
  }
}

function skipEscape(bytes: Uint8Array, at: number): number {
  const c = bytes[at] as number;
  if (c !== LOWER_U) {
    if (!(c >= QUOTE && '"\\/bfnrt'.includes(String.fromCharCode(c)))) throw unexpected(bytes, at);
    if (c === SLASH) isCanonical = false;
    return at + 1;
  }
  isCanonical = false;
  for (let i = at + 1; i < at + 5; i += 1) {
    const digit = bytes[i] as number;
    const lower = digit | CASE;
    if (!((digit >= ZERO && digit <= NINE) || (lower >= 0x61 && lower <= 0x66))) throw unexpected(bytes, i);
  }
  return at + 5;
}

export function skipNumber(bytes: Uint8Array, at: number): number {
  let i = at;
  let c = bytes[i] as number;
  if (c === MINUS) c = bytes[(i += 1)] as number;
  if (c === ZERO) c = bytes[(i += 1)] as number;
  else if (c > ZERO && c <= NINE) while (c >= ZERO && c <= NINE) c = bytes[(i += 1)] as number;
  else throw unexpected(bytes, i);
  if (c === POINT) {
    c = bytes[(i += 1)] as number;
    if (!(c >= ZERO && c <= NINE)) throw unexpected(bytes, i);
    while (c >= ZERO && c <= NINE) c = bytes[(i += 1)] as number;
  }
  if ((c | CASE) !== LOWER_E && i - at <= SURELY_FINITE) return i;
  isCanonical = false;
  return (c | CASE) === LOWER_E ? skipExponent(bytes, i + 1) : i;
}

function skipExponent(bytes: Uint8Array, at: number): number {
  let i = at;
  let c = bytes[i] as number;
  if (c === PLUS || c === MINUS) c = bytes[(i += 1)] as number;
  if (!(c >= ZERO && c <= NINE)) throw unexpected(bytes, i);
  while (c >= ZERO && c <= NINE) c = bytes[(i += 1)] as number;
  return i;
}

function skipArray(bytes: Uint8Array, at: number, depth: number): number {
  if (depth > DEEPEST) throw new JsonFault('depth', at, `nested deeper than ${DEEPEST} levels`);
  let i = skipWhite(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACKET) return i + 1;
  for (;;) {
    i = skipWhite(bytes, skipValue(bytes, i, depth + 1));
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    if (bytes[i] !== COMMA) throw unexpected(bytes, i);
    i = skipWhite(bytes, i + 1);
  }
}

function skipObject(bytes: Uint8Array, at: number, depth: number): number {
  if (depth > DEEPEST) throw new JsonFault('depth', at, `nested deeper than ${DEEPEST} levels`);
  let i = skipWhite(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACE) return i + 1;
  for (;;) {
    i = skipColon(bytes, Math.abs(skipKey(bytes, i)));
    i = skipWhite(bytes, skipValue(bytes, i, depth + 1));
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    if (bytes[i] !== COMMA) throw unexpected(bytes, i);
    i = skipWhite(bytes, i + 1);
  }
}

/** The index after the key's closing quote, negated when there are escapes inside. */
export function skipKey(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) throw unexpected(bytes, at);
  return skipString(bytes, at);
}

/** From after a key to the first byte of its value. */
export function skipColon(bytes: Uint8Array, at: number): number {
  let i = at;
  if (bytes[i] !== COLON) i = skipWhite(bytes, i);
  if (bytes[i] !== COLON) throw unexpected(bytes, i);
  return skipWhite(bytes, i + 1);
}

/** The members of the object at `at`: the spans of each name with its quotes, and of each value. @throws JsonFault */
export function* membersOf(bytes: Uint8Array, at: number): Generator<{ name: Span; value: Span }> {
  let i = skipWhite(bytes, at);
  if (bytes[i] !== OPEN_BRACE) throw unexpected(bytes, i);
  i = skipWhite(bytes, i + 1);
  if (bytes[i] === CLOSE_BRACE) return;
  for (;;) {
    const end = Math.abs(skipKey(bytes, i));
    const from = skipColon(bytes, end);
    const to = skipValue(bytes, from, 2);
    yield { name: [i, end], value: [from, to] };
    i = skipWhite(bytes, to);
    if (bytes[i] === CLOSE_BRACE) return;
    if (bytes[i] !== COMMA) throw unexpected(bytes, i);
    i = skipWhite(bytes, i + 1);
  }
}

type Span = readonly [from: number, to: number];

export function unexpected(bytes: Uint8Array, at: number): JsonFault {
  const c = bytes[at];
  if (c === undefined) return new JsonFault('syntax', at, 'not JSON: it ends too early');
  const shown = c > 0x20 && c < 0x7f ? `'${String.fromCharCode(c)}'` : `0x${c.toString(16).padStart(2, '0')}`;
  return new JsonFault('syntax', at, `not JSON: ${shown} was not expected`);
}

/** A loop: for a few bytes `Buffer.compare` takes ten times as long. */
export function beginsWith(bytes: Uint8Array, at: number, head: Uint8Array): boolean {
  for (let i = 0; i < head.length; i += 1) if (bytes[at + i] !== head[i]) return false;
  return true;
}
