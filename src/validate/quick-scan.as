/**
 * AssemblyScript (TypeScript in syntax, WebAssembly as result): looks through a JSON object as `Scanner` does, with SIMD.
 * `npm run wasm` makes `quick-scan-wasm.ts` of it. It only ever says yes: what is no JSON object, is nested too deeply, or
 * has a name with escapes among its members is left to `Scanner`, which says what it is.
 *
 * Functions that read take the address of a value's first byte and return the address after its last, or 0 when it is none.
 * Behind the text there are zeros, at which every reading stops.
 */

const QUOTE: u32 = 0x22, PLUS: u32 = 0x2b, COMMA: u32 = 0x2c, MINUS: u32 = 0x2d, POINT: u32 = 0x2e, ZERO: u32 = 0x30, COLON: u32 = 0x3a;
const OPEN_BRACKET: u32 = 0x5b, BACKSLASH: u32 = 0x5c, CLOSE_BRACKET: u32 = 0x5d, OPEN_BRACE: u32 = 0x7b, CLOSE_BRACE: u32 = 0x7d;
const SPACE: u32 = 0x20, LETTER_E: u32 = 0x65, LETTER_U: u32 = 0x75;
const NULL: u32 = 0x6c6c756e, TRUE: u32 = 0x65757274, ALSE: u32 = 0x65736c61;

/**
 * Takes the spans of the members that are looked for, and checks the rest.
 * @param names as JSON, quotes included, each behind its length; the last one has the length 0
 * @param spans for each name, first byte and end of the value of the last member of that name; untouched without one
 * @param levels room for a byte for each level of nesting, as many as are allowed
 * @returns whether all of the text is a JSON object
 */
export function scan(from: u32, to: u32, names: u32, spans: u32, levels: u32, maxDepth: u32): bool {
  let at = white(from);
  if (maxDepth == 0 || byte(at) != OPEN_BRACE) return false;
  // By level, whether it is an object; the outermost one is.
  let level = levels;
  let inObject = true;
  store<u8>(level, 1);
  let member: u32 = 0;
  let valueAt: u32 = 0;
  at = white(at + 1);
  if (byte(at) == CLOSE_BRACE) return white(at + 1) == to;
  while (true) {
    if (inObject) {
      const key = at;
      if (byte(at) != QUOTE) return false;
      at = text(at);
      if (at == 0) return false;
      if (level == levels) {
        if (hasEscape(key, at)) return false;
        member = find(names, spans, key, at - key);
      }
      at = white(at);
      if (byte(at) != COLON) return false;
      at = white(at + 1);
      if (level == levels) valueAt = at;
    }
    const first = byte(at);
    if (first == OPEN_BRACE || first == OPEN_BRACKET) {
      level += 1;
      if (level == levels + maxDepth) return false;
      inObject = first == OPEN_BRACE;
      store<u8>(level, inObject ? 1 : 0);
      at = white(at + 1);
      if (byte(at) != (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) continue;
    } else {
      at = first == QUOTE ? text(at) : scalar(at, first);
      if (at == 0) return false;
      if (level == levels) note(member, valueAt, at);
      at = white(at);
    }
    while (byte(at) == (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      at += 1;
      if (level == levels) return white(at) == to;
      level -= 1;
      inObject = load<u8>(level) != 0;
      if (level == levels) note(member, valueAt, at);
      at = white(at);
    }
    if (byte(at) != COMMA) return false;
    at = white(at + 1);
  }
}

// @ts-ignore
@inline function byte(at: u32): u32 {
  return load<u8>(at);
}

// @ts-ignore
@inline function note(member: u32, from: u32, to: u32): void {
  if (member == 0) return;
  store<u32>(member, from);
  store<u32>(member, to, 4);
}

// @ts-ignore
@inline function white(at: u32): u32 {
  return byte(at) > SPACE ? at : skipWhite(at);
}

function skipWhite(at: u32): u32 {
  let i = at;
  let c = byte(i);
  while (c == 0x20 || c == 0x0a || c == 0x0d || c == 0x09) c = byte(++i);
  return i;
}

/** A bit for each of 16 bytes that is a quote, a backslash or a control character. */
// @ts-ignore
@inline function stops(at: u32): i32 {
  const bytes = v128.load(at);
  const quotes = i8x16.eq(bytes, i8x16.splat(<i8>QUOTE));
  const escapes = i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH));
  return i8x16.bitmask(v128.or(v128.or(quotes, escapes), i8x16.lt_u(bytes, i8x16.splat(<i8>SPACE))));
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
    if (escaped == LETTER_U) {
      for (let digit: u32 = 2; digit < 6; digit += 1) if (!isHex(byte(i + digit))) return 0;
      i += 6;
      continue;
    }
    // " \ / b f n r t
    if (escaped != 0x22 && escaped != 0x5c && escaped != 0x2f && escaped != 0x62 && escaped != 0x66 && escaped != 0x6e && escaped != 0x72 && escaped != 0x74) return 0;
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

/** A number, `true`, `false` or `null`. */
// @ts-ignore
@inline function scalar(at: u32, first: u32): u32 {
  if (first == 0x74) return load<u32>(at) == TRUE ? at + 4 : 0;
  if (first == 0x66) return load<u32>(at + 1) == ALSE ? at + 5 : 0;
  if (first == 0x6e) return load<u32>(at) == NULL ? at + 4 : 0;
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
