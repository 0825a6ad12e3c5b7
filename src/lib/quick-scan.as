/**
 * AssemblyScript (TypeScript in syntax, WebAssembly as result): looks through a JSON object as `Scanner` does, with SIMD.
 * `npm run wasm` makes `quick-scan-wasm.ts` of it. It only ever says yes: what is no JSON object, is nested too deeply, or
 * has a name with escapes among its members is left to `Scanner`, which says what it is.
 *
 * Functions that read take the address of a value's first byte and return the address after its last, or 0 when it is none.
 * Behind the text there are zeros, at which every reading stops.
 */

const QUOTE: u32 = 0x22, PLUS: u32 = 0x2b, COMMA: u32 = 0x2c, MINUS: u32 = 0x2d, POINT: u32 = 0x2e, SLASH: u32 = 0x2f, ZERO: u32 = 0x30, NINE: u32 = 0x39, COLON: u32 = 0x3a;
const OPEN_BRACKET: u32 = 0x5b, BACKSLASH: u32 = 0x5c, CLOSE_BRACKET: u32 = 0x5d, OPEN_BRACE: u32 = 0x7b, CLOSE_BRACE: u32 = 0x7d;
const SPACE: u32 = 0x20, LETTER_E: u32 = 0x65, LETTER_U: u32 = 0x75;
const NULL: u32 = 0x6c6c756e, TRUE: u32 = 0x65757274, ALSE: u32 = 0x65736c61;

/** Digits that no exponent-free double overflows on. */
const SURELY_FINITE: u32 = 300;

/** Of the text scanned last, whether its JSON stands as rows write it: no white space, escape that is not needed, or odd number. */
export let isCanonical = true;
/** How many of its members nobody looks for, or have the name of one before. */
export let others: u32 = 0;

/**
 * Takes the spans of the members that are looked for, and checks the rest.
 * @param to end of the text; what stands in the 64 bytes behind it is overwritten
 * @param names as JSON, quotes included, each behind its length; the last one has the length 0
 * @param spans for each name, first byte and end of the value of the last member of that name; untouched without one, and -1 before
 * @param levels room for a byte for each level of nesting, as many as are allowed
 * @returns whether all of the text is a JSON object
 */
export function scan(from: u32, to: u32, names: u32, spans: u32, levels: u32, maxDepth: u32): bool {
  for (let behind: u32 = 0; behind < 64; behind += 16) v128.store(to + behind, i8x16.splat(0));
  isCanonical = true;
  others = 0;
  let at = white(from);
  if (maxDepth == 0 || byte(at) != OPEN_BRACE) return false;
  at = white(at + 1);
  if (byte(at) == CLOSE_BRACE) return white(at + 1) == to;
  while (true) {
    const key = at;
    if (byte(at) != QUOTE) return false;
    at = text(at);
    if (at == 0 || hasEscape(key, at)) return false;
    const member = find(names, spans, key, at - key);
    at = white(at);
    if (byte(at) != COLON) return false;
    at = white(at + 1);
    const value = at;
    const first = byte(at);
    at = first == OPEN_BRACE || first == OPEN_BRACKET ? nested(at, levels, levels + maxDepth - 1) : plain(at, first);
    if (at == 0) return false;
    if (member == 0 || load<i32>(member) >= 0) others += 1;
    if (member != 0) {
      store<u32>(member, value);
      store<u32>(member, at, 4);
    }
    at = white(at);
    if (byte(at) == CLOSE_BRACE) return white(at + 1) == to;
    if (byte(at) != COMMA) return false;
    at = white(at + 1);
  }
}

/** An object or array with all that is in it. @param levels by level, whether that around it is an object */
function nested(from: u32, levels: u32, deepest: u32): u32 {
  let at = from;
  let level = levels;
  let inObject = false;
  while (true) {
    let c = byte(at);
    if (c == OPEN_BRACE || c == OPEN_BRACKET) {
      if (level == deepest) return 0;
      store<u8>(level, inObject ? 1 : 0);
      level += 1;
      inObject = c == OPEN_BRACE;
      at = white(at + 1);
      c = byte(at);
      if (c != (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
        if (!inObject) continue;
        at = name(at);
        if (at == 0) return 0;
        continue;
      }
    } else {
      at = plain(at, c);
      if (at == 0) return 0;
      c = byte(at);
    }
    while (c != COMMA) {
      if (c == (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
        at += 1;
        level -= 1;
        inObject = load<u8>(level) != 0;
        if (level == levels) return at;
      } else {
        const next = skipWhite(at);
        if (next == at) return 0;
        at = next;
      }
      c = byte(at);
    }
    at = white(at + 1);
    if (!inObject) continue;
    at = name(at);
    if (at == 0) return 0;
  }
}

/**
 * A member's name and colon. There is a jump for each usual length: names come again in the same order, so processors foresee the jump,
 * where they would wait for a sum before they could look at the next byte. That takes a quarter from the time of a whole body.
 */
// @ts-ignore
@inline function name(at: u32): u32 {
  if (byte(at) != QUOTE) return 0;
  let end = at + 1;
  switch (ctz(stops(end))) {
    case 0: break; case 1: end += 1; break; case 2: end += 2; break; case 3: end += 3; break;
    case 4: end += 4; break; case 5: end += 5; break; case 6: end += 6; break; case 7: end += 7; break;
    case 8: end += 8; break; case 9: end += 9; break; case 10: end += 10; break; case 11: end += 11; break;
    case 12: end += 12; break; case 13: end += 13; break; case 14: end += 14; break; case 15: end += 15; break;
  }
  end = byte(end) == QUOTE ? end + 1 : longText(at + 1);
  if (end == 0) return 0;
  if (byte(end) != COLON) {
    end = skipWhite(end);
    if (byte(end) != COLON) return 0;
  }
  return white(end + 1);
}

/** What is neither object nor array. */
// @ts-ignore
@inline function plain(at: u32, first: u32): u32 {
  return first == QUOTE ? text(at) : first > NINE ? literal(at, first) : number(at, first);
}

// @ts-ignore
@inline function byte(at: u32): u32 {
  return load<u8>(at);
}

// @ts-ignore
@inline function white(at: u32): u32 {
  return byte(at) > SPACE ? at : skipWhite(at);
}

function skipWhite(at: u32): u32 {
  let i = at;
  let c = byte(i);
  while (c == 0x20 || c == 0x0a || c == 0x0d || c == 0x09) c = byte(++i);
  if (i > at) isCanonical = false;
  return i;
}

/** A bit for each of 16 bytes that is a quote, a backslash or a control character. */
// @ts-ignore
@inline function stops(at: u32): i32 {
  const bytes = v128.load(at);
  const quotes = i8x16.eq(bytes, i8x16.splat(<i8>QUOTE));
  const escapes = i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH));
  const controls = i8x16.eq(i8x16.min_u(bytes, i8x16.splat(<i8>SPACE - 1)), bytes);
  return i8x16.bitmask(v128.or(v128.or(quotes, escapes), controls));
}

/** A string. Most are short, and without escapes. */
// @ts-ignore
@inline function text(at: u32): u32 {
  const mask = stops(at + 1);
  const end = at + 1 + ctz(mask);
  return mask != 0 && byte(end) == QUOTE ? end + 1 : longText(at + 1);
}

function longText(at: u32): u32 {
  let i = at;
  while (true) {
    const mask = stops(i);
    if (mask == 0) {
      i += 16;
      continue;
    }
    i += ctz(mask);
    const c = byte(i);
    if (c == QUOTE) return i + 1;
    if (c != BACKSLASH) return 0;
    const escaped = byte(i + 1);
    if (escaped == LETTER_U || escaped == SLASH) isCanonical = false;
    if (escaped == LETTER_U) {
      for (let digit: u32 = 2; digit < 6; digit += 1) if (!isHex(byte(i + digit))) return 0;
      i += 6;
      continue;
    }
    // " \ / b f n r t
    if (escaped != 0x22 && escaped != 0x5c && escaped != SLASH && escaped != 0x62 && escaped != 0x66 && escaped != 0x6e && escaped != 0x72 && escaped != 0x74) return 0;
    i += 2;
  }
}

function isHex(c: u32): bool {
  return isDigit(c) || (c | 0x20) - 0x61 < 6;
}

// @ts-ignore
@inline function isDigit(c: u32): bool {
  return c - ZERO < 10;
}

/** `true`, `false` or `null`. */
function literal(at: u32, first: u32): u32 {
  if (first == 0x74) return load<u32>(at) == TRUE ? at + 4 : 0;
  if (first == 0x66) return load<u32>(at + 1) == ALSE ? at + 5 : 0;
  return load<u32>(at) == NULL ? at + 4 : 0;
}

// @ts-ignore
@inline function number(at: u32, first: u32): u32 {
  let i = at;
  let c = first;
  if (c == MINUS) c = byte(++i);
  if (c == ZERO) c = byte(++i);
  else if (!isDigit(c)) return 0;
  else while (isDigit(c)) c = byte(++i);
  if (c == POINT) {
    c = byte(++i);
    if (!isDigit(c)) return 0;
    while (isDigit(c)) c = byte(++i);
  }
  if ((c | 0x20) == LETTER_E || i - at > SURELY_FINITE) isCanonical = false;
  if ((c | 0x20) != LETTER_E) return i;
  c = byte(++i);
  if (c == PLUS || c == MINUS) c = byte(++i);
  if (!isDigit(c)) return 0;
  while (isDigit(c)) c = byte(++i);
  return i;
}

function hasEscape(from: u32, to: u32): bool {
  for (let i = from; i < to; i += 1) if (byte(i) == BACKSLASH) return true;
  return false;
}

/** Where the span of a name is; 0 when nobody looks for it. */
function find(names: u32, spans: u32, key: u32, length: u32): u32 {
  let name = names;
  let span = spans;
  while (true) {
    const size: u32 = load<u32>(name);
    if (size == 0) return 0;
    if (size == length && memory.compare(name + 4, key, length) == 0) return span;
    name += 4 + size;
    span += 8;
  }
}
