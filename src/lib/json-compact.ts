import { MINUS, QUOTE, skipNumber, skipString, SURELY_FINITE } from './json-text.ts';

/**
 * Canonical text of JSON that was checked before: no white space between tokens, strings with only the escapes they need, numbers as
 * written.
 */

/** Copies a value to `out`, which has room for twice its length. @returns the index in `out` after it */
export function copyCompact(
  bytes: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
  at: number,
): number {
  let o = at;
  /** From here on the text is canonical, and still to be copied in one piece. */
  let kept = from;
  let i = from;
  while (i < to) {
    const c = bytes[i] as number;
    if (c === QUOTE) {
      const end = skipString(bytes, i);
      if (end < 0) {
        o = copyText(bytes, i, end, out, copy(bytes, kept, i, out, o));
        kept = -end;
      }
      i = Math.abs(end);
    } else if (c === MINUS || (c >= 0x30 && c <= 0x39)) {
      const end = skipNumber(bytes, i);
      if (!isFiniteText(bytes, i, end)) {
        o = copyAsString(bytes, i, end, out, copy(bytes, kept, i, out, o));
        kept = end;
      }
      i = end;
    } else {
      if (c <= 0x20) {
        o = copy(bytes, kept, i, out, o);
        kept = i + 1;
      }
      i += 1;
    }
  }
  return copy(bytes, kept, to, out, o);
}

/** As `copyCompact`. @param to negative for text that may not be canonical */
export function copyJson(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  return to > 0 ? copy(bytes, from, to, out, at) : copyCompact(bytes, from, -to, out, at);
}

/** Copies bytes unchanged. For short ones a loop is faster than the call into the engine. */
export function copy(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  const length = to - from;
  if (length > 96) {
    out.set(bytes.subarray(from, to), at);
  } else {
    for (let i = 0; i < length; i += 1) out[at + i] = bytes[from + i] as number;
  }
  return at + length;
}

/** Copies a string with its quotes. @param to negative for a string with escapes, which are made canonical; it gets no longer */
export function copyText(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  if (to > 0) return copy(bytes, from, to, out, at);
  const text = canonicalString(bytes, from, -to);
  return copy(text, 0, text.length, out, at);
}

/**
 * A JSON string with only the escapes it needs. Lone surrogates and NUL become U+FFFD: DuckDB refuses a whole file for one of the
 * former, PostgreSQL for one of the latter.
 */
export function canonicalString(bytes: Uint8Array, from: number, to: number): Buffer {
  const text = JSON.parse(textOf(bytes, from, to)) as string;
  return Buffer.from(JSON.stringify(text.replaceAll('\0', '\ufffd').toWellFormed()));
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8');
}

/** A number that no double can hold (1E400) becomes a string: loaders would refuse it or make it infinite. */
function copyAsString(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  out[at] = QUOTE;
  const end = copy(bytes, from, to, out, at + 1);
  out[end] = QUOTE;
  return end + 1;
}

function isFiniteText(bytes: Uint8Array, from: number, to: number): boolean {
  let exponent = to - from > SURELY_FINITE;
  for (let i = from; i < to && !exponent; i += 1) exponent = ((bytes[i] as number) | 0x20) === 0x65;
  return !exponent || Number.isFinite(Number(textOf(bytes, from, to)));
}
