export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** Bytes that a string goes on over: all but the quote, the backslash and control characters. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 0 : 1,
);

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Where the string, word or number that begins at `at` ends; -1 when it is not JSON (RFC 8259), for all functions here. */
export function endOfScalar(json: Buffer, at: number, byte: number): number {
  if (byte === QUOTE) return endOfString(json, at + 1);
  if (byte === 0x74) return endOfWord(json, at, TRUE);
  if (byte === 0x66) return endOfWord(json, at, FALSE);
  if (byte === 0x6e) return endOfWord(json, at, NULL);
  return endOfNumber(json, at);
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

export function isAt(json: Buffer, from: number, text: Buffer): boolean {
  for (let at = 0; at < text.length; at += 1) if (json[from + at] !== text[at]) return false;
  return true;
}

function endOfWord(json: Buffer, at: number, word: Buffer): number {
  return isAt(json, at, word) ? at + word.length : -1;
}

/** @param from behind the opening quote */
export function endOfString(json: Buffer, from: number): number {
  let at = from;
  for (;;) {
    while (PLAIN[json[at] ?? 0] === 1) at += 1;
    const byte = json[at];
    if (byte === QUOTE) return at + 1;
    if (byte !== BACKSLASH) return -1;
    at = endOfEscape(json, at + 1);
    if (at < 0) return -1;
  }
}

const ESCAPED = new Set(Buffer.from('"\\/bfnrt'));

function endOfEscape(json: Buffer, at: number): number {
  const byte = json[at] ?? 0;
  if (byte !== 0x75) return ESCAPED.has(byte) ? at + 1 : -1;
  for (let digit = 1; digit <= 4; digit += 1) if (!isHex(json[at + digit] ?? 0)) return -1;
  return at + 5;
}

function isHex(byte: number): boolean {
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function endOfNumber(json: Buffer, from: number): number {
  let at = json[from] === 0x2d ? from + 1 : from;
  if (!isDigit(json[at])) return -1;
  at = json[at] === 0x30 ? at + 1 : endOfDigits(json, at);
  if (json[at] === 0x2e) {
    if (!isDigit(json[at + 1])) return -1;
    at = endOfDigits(json, at + 1);
  }
  if (json[at] === 0x65 || json[at] === 0x45) {
    at += json[at + 1] === 0x2b || json[at + 1] === 0x2d ? 2 : 1;
    if (!isDigit(json[at])) return -1;
    at = endOfDigits(json, at);
  }
  return at;
}

function endOfDigits(json: Buffer, from: number): number {
  let at = from;
  while (isDigit(json[at])) at += 1;
  return at;
}
