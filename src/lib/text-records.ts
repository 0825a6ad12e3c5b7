/**
 * Texts one after the other, each as a record: hash, number and length in bytes (32 bits each), then the text as UTF-8,
 * filled up to a multiple of four.
 */
export interface Texts {
  readonly words: Uint32Array;
  /** The same memory. */
  readonly bytes: Buffer;
}

/** Bytes in front of a text. */
export const HEAD = 12;

/** Bytes of a record whose text has so many. */
export function sizeOf(length: number): number {
  return (HEAD + length + 3) & ~3;
}

/**
 * Writes a record. There is room for three bytes for each of the text's UTF-16 units.
 * @returns its size
 */
export function writeText(texts: Texts, at: number, text: string, number: number): number {
  const { words, bytes } = texts;
  const word = at >>> 2;
  let { length } = text;
  if (!writeAscii(words, word + HEAD / 4, text)) {
    length = bytes.write(text, at + HEAD);
    // Texts are compared by words.
    bytes.fill(0, at + HEAD + length, at + sizeOf(length));
  }
  words[word] = hashOf(words, word + HEAD / 4, (at + sizeOf(length)) >>> 2);
  words[word + 1] = number;
  words[word + 2] = length;
  return sizeOf(length);
}

/** Ids are short ASCII: a call of a native method would take longer than all of this. @returns whether it is one */
function writeAscii(words: Uint32Array, word: number, text: string): boolean {
  const { length } = text;
  const whole = length & ~3;
  let to = word;
  let all = 0;
  for (let i = 0; i < whole; i += 4, to += 1) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    const c = text.charCodeAt(i + 2);
    const d = text.charCodeAt(i + 3);
    all |= a | b | c | d;
    words[to] = a | (b << 8) | (c << 16) | (d << 24);
  }
  if (whole < length) {
    let last = 0;
    for (let i = whole; i < length; i += 1) {
      const unit = text.charCodeAt(i);
      all |= unit;
      last |= unit << ((i - whole) * 8);
    }
    words[to] = last;
  }
  return all <= 0x7f;
}

/** Murmur3, of words: its upper bits are as random as its lower ones. */
function hashOf(words: Uint32Array, from: number, to: number): number {
  let hash = to - from;
  for (let n = from; n < to; n += 1) {
    const part = Math.imul(words[n] ?? 0, 0xcc9e2d51);
    hash ^= Math.imul((part << 15) | (part >>> 17), 0x1b873593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * By hash, then in some order that is the same wherever a text stands: below 0 when the record of `a` comes first, 0 when
 * both are of one text.
 */
export function compareTexts(a: Texts, atA: number, b: Texts, atB: number): number {
  const hashA = a.words[atA >>> 2] ?? 0;
  const hashB = b.words[atB >>> 2] ?? 0;
  return hashA === hashB ? compareWords(a.words, atA >>> 2, b.words, atB >>> 2) : hashA - hashB;
}

export function isSameText(a: Texts, atA: number, b: Texts, atB: number): boolean {
  return compareTexts(a, atA, b, atB) === 0;
}

/** Length first, then the text four bytes at a time. */
function compareWords(a: Uint32Array, recordA: number, b: Uint32Array, recordB: number): number {
  const length = a[recordA + 2] ?? 0;
  const other = b[recordB + 2] ?? 0;
  if (length !== other) return length - other;
  const last = sizeOf(length) / 4;
  for (let n = HEAD / 4; n < last; n += 1) {
    const wordA = a[recordA + n] ?? 0;
    const wordB = b[recordB + n] ?? 0;
    if (wordA !== wordB) return wordA - wordB;
  }
  return 0;
}

const DIGIT_BITS = 11;
const DIGITS = 2 ** DIGIT_BITS;

/** Where the first `count` records begin: by hash, then by text; those of one text as they stand. */
export function orderedOffsets(texts: Texts, count: number): Uint32Array {
  const { words } = texts;
  // Hashes and offsets in one array: fetching each hash from its record again would wait for memory.
  let pairs = new Uint32Array(count * 2);
  for (let n = 0, at = 0; n < pairs.length; n += 2, at += sizeOf(words[(at >>> 2) + 2] ?? 0)) {
    pairs[n] = words[at >>> 2] ?? 0;
    pairs[n + 1] = at;
  }
  let sorted = new Uint32Array(pairs.length);
  // A digit of the hash at a time, the lowest first; each pass keeps the order of the one before.
  for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
    sortByDigit(pairs, sorted, shift);
    [pairs, sorted] = [sorted, pairs];
  }
  const offsets = sorted.subarray(0, count);
  for (let n = 0; n < count; n += 1) offsets[n] = pairs[2 * n + 1] ?? 0;
  orderTies(texts, pairs, offsets);
  return offsets;
}

function sortByDigit(pairs: Uint32Array, sorted: Uint32Array, shift: number): void {
  const places = new Uint32Array(DIGITS);
  for (let n = 0; n < pairs.length; n += 2) {
    const digit = ((pairs[n] ?? 0) >>> shift) & (DIGITS - 1);
    places[digit] = (places[digit] ?? 0) + 2;
  }
  let before = 0;
  for (const [digit, size] of places.entries()) {
    places[digit] = before;
    before += size;
  }
  for (let n = 0; n < pairs.length; n += 2) {
    const hash = pairs[n] ?? 0;
    const digit = (hash >>> shift) & (DIGITS - 1);
    const place = places[digit] ?? 0;
    sorted[place] = hash;
    sorted[place + 1] = pairs[n + 1] ?? 0;
    places[digit] = place + 2;
  }
}

/** Records of one hash, by their texts. */
function orderTies(texts: Texts, pairs: Uint32Array, offsets: Uint32Array): void {
  for (let from = 0; from < offsets.length;) {
    let to = from + 1;
    while (to < offsets.length && pairs[2 * to] === pairs[2 * from]) to += 1;
    if (to - from > 1) orderTied(texts, offsets.subarray(from, to));
    from = to;
  }
}

function orderTied(texts: Texts, offsets: Uint32Array): void {
  // Mostly they are of one text.
  const isInOrder = offsets.every(
    (at, n) => n === 0 || compareTexts(texts, offsets[n - 1] ?? 0, texts, at) <= 0,
  );
  if (!isInOrder) offsets.sort((a, b) => compareTexts(texts, a, texts, b) || a - b);
}
