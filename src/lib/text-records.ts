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

/** 32 bits, well mixed. It only says what is sorted where: nothing is decided by it. */
export function hashOf(bytes: Uint8Array, from: number, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < from + length; i += 1) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** By hash, then by text: below 0 when the record of `a` comes first, 0 when both are of one text. */
export function compareTexts(a: Texts, atA: number, b: Texts, atB: number): number {
  const hashA = a.words[atA >>> 2] ?? 0;
  const hashB = b.words[atB >>> 2] ?? 0;
  if (hashA !== hashB) return hashA < hashB ? -1 : 1;
  const endA = atA + HEAD + (a.words[(atA >>> 2) + 2] ?? 0);
  const endB = atB + HEAD + (b.words[(atB >>> 2) + 2] ?? 0);
  return a.bytes.compare(b.bytes, atB + HEAD, endB, atA + HEAD, endA);
}

export function sameText(a: Texts, atA: number, b: Texts, atB: number): boolean {
  return a.words[atA >>> 2] === b.words[atB >>> 2] && compareTexts(a, atA, b, atB) === 0;
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
  orderTies(texts, offsets);
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
function orderTies(texts: Texts, offsets: Uint32Array): void {
  const { words } = texts;
  const hashAt = (n: number): number | undefined => words[(offsets[n] ?? 0) >>> 2];
  for (let from = 0; from < offsets.length;) {
    let to = from + 1;
    while (to < offsets.length && hashAt(to) === hashAt(from)) to += 1;
    if (to - from > 1) offsets.subarray(from, to).sort((a, b) => compareTexts(texts, a, texts, b) || a - b);
    from = to;
  }
}
