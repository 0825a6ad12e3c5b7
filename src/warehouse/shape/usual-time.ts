import { copyText } from '../../lib/json-compact.ts';

/**
 * Times as every database reads them: with seconds, at most microseconds, `T` and `Z` in capitals, and a colon in the offset.
 * They are written so here, for every way out. Databases would round a finer fraction or refuse it, each in its own way, and a time must never
 * become a later one.
 */

/** Places in a time in quotes: between date and time, behind the minutes, and where the digits of a fraction begin. */
const SEPARATOR = 11;
const SECONDS = 17;
const FRACTION = 21;
const BEYOND_MICROSECONDS = FRACTION + 6;
/** Lengths of a date in quotes, and of a time of the usual form that has neither fraction nor offset. */
const DATE = 12;
const TO_SECONDS = 21;
const COLON = 0x3a;
const POINT = 0x2e;
const QUOTE = 0x22;
const UTC = 0x5a;

/** Copies a time in quotes, as `fitsTimestamp` takes it; it grows by six at most. */
export function copyTime(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  let end = copyText(bytes, from, to, out, at);
  if (end - at === DATE) return end;
  if (out[at + SEPARATOR] === 0x74) out[at + SEPARATOR] = 0x54;
  if (out[at + SECONDS] !== COLON) end = inserted(':00', out, at + SECONDS, end);
  if (end - at === TO_SECONDS) return end;
  const beyond = digitsBeyond(out, at, end);
  if (beyond > 0) out.copyWithin(at + BEYOND_MICROSECONDS, at + BEYOND_MICROSECONDS + beyond, end);
  end -= beyond;
  return withUsualZone(out, at, end);
}

/** The same of a time that is all there is, or of nothing. */
export function usualTime(time: Uint8Array): Uint8Array {
  if (time.length === 0) return time;
  const out = new Uint8Array(time.length + 6);
  return out.subarray(0, copyTime(time, 0, time.length, out, 0));
}

function withUsualZone(out: Uint8Array, at: number, end: number): number {
  if (out[end - 2] === 0x7a) out[end - 2] = UTC;
  // `Z` or a colon where most offsets have it.
  if (out[end - 2] === UTC || out[end - 4] === COLON) return end;
  const zone = out[at + FRACTION - 1] === POINT ? fractionEnd(out, at) : at + TO_SECONDS - 1;
  if (out[zone] === QUOTE) return end;
  return end - zone === 4 ? inserted(':00', out, end - 1, end) : inserted(':', out, end - 3, end);
}

/** How many digits beyond microseconds a time in quotes has. */
function digitsBeyond(bytes: Uint8Array, at: number, end: number): number {
  if (end - at <= BEYOND_MICROSECONDS || bytes[at + FRACTION - 1] !== POINT) return 0;
  return Math.max(fractionEnd(bytes, at) - at - BEYOND_MICROSECONDS, 0);
}

function fractionEnd(bytes: Uint8Array, at: number): number {
  let i = at + FRACTION;
  while ((bytes[i] as number) >= 0x30 && (bytes[i] as number) <= 0x39) i += 1;
  return i;
}

function inserted(text: string, out: Uint8Array, at: number, end: number): number {
  out.copyWithin(at + text.length, at, end);
  for (let i = 0; i < text.length; i += 1) out[at + i] = text.charCodeAt(i);
  return end + text.length;
}
