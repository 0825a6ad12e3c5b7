import { copyText } from '../../lib/json-compact.ts';
import { COLON, MINUS, PLUS, POINT, QUOTE, ZERO } from '../../lib/json-text.ts';

/** Seconds since the epoch, and microseconds behind them. */
const found = { seconds: 0, micros: 0 };

/**
 * The instant of a time without its quotes, valid by `isTimestamp`; without an offset it is UTC. Digits beyond microseconds are
 * cut off, never rounded.
 * @returns valid until the next call
 */
export function instantOf(bytes: Uint8Array, from: number, to: number): Readonly<typeof found> {
  let seconds = dayOf(bytes, from) * 86_400;
  let micros = 0;
  if (to - from > 10) {
    seconds += twoDigits(bytes, from + 11) * 3600 + twoDigits(bytes, from + 14) * 60;
    let i = from + 16;
    if (bytes[i] === COLON) {
      seconds += twoDigits(bytes, i + 1);
      i += 3;
    }
    if (bytes[i] === POINT) {
      i += 1;
      for (let digits = 0; digits < 6; digits += 1) {
        const digit = i < to ? (bytes[i] as number) - ZERO : -1;
        const isDigit = digit >= 0 && digit <= 9;
        micros = micros * 10 + (isDigit ? digit : 0);
        if (isDigit) i += 1;
      }
      while (i < to && (bytes[i] as number) >= ZERO && (bytes[i] as number) <= ZERO + 9) i += 1;
    }
    if (i < to && (bytes[i] === PLUS || bytes[i] === MINUS)) {
      const minutes = bytes[i + 3] === COLON ? i + 4 : i + 3;
      const offset = twoDigits(bytes, i + 1) * 3600 + (minutes < to ? twoDigits(bytes, minutes) * 60 : 0);
      seconds += bytes[i] === MINUS ? offset : -offset;
    }
  }
  found.seconds = seconds;
  found.micros = micros;
  return found;
}

/** Days since the epoch of `YYYY-MM-DD`; years begin in March, so that leap days come last. */
export function dayOf(bytes: Uint8Array, at: number): number {
  const month = twoDigits(bytes, at + 5);
  const year = twoDigits(bytes, at) * 100 + twoDigits(bytes, at + 2) - (month <= 2 ? 1 : 0);
  const day = Math.trunc((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + twoDigits(bytes, at + 8) - 1;
  const leaps = Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400);
  return year * 365 + leaps + day - 719_468;
}

function twoDigits(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) - ZERO) * 10 + (bytes[at + 1] as number) - ZERO;
}

/**
 * Times are written as every database reads them: with seconds, at most microseconds, `T` and `Z` in capitals, and a colon in the
 * offset. Databases round or refuse a finer fraction, each in its own way, and a rounded time would be a later one.
 */

/** Indexes in a time in quotes: between date and time, behind the minutes, and where the digits of a fraction begin. */
const SEPARATOR = 11;
const SECONDS = 17;
const FRACTION = 21;
const BEYOND_MICROSECONDS = FRACTION + 6;
/** Lengths of a date in quotes, and of a time of the usual form that has neither fraction nor offset. */
const DATE = 12;
const TO_SECONDS = 21;
const UTC = 0x5a;

/** Copies a time in quotes, valid by `isTimestamp`; it grows by at most six bytes. @returns the index in `out` after it */
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

/** A time in quotes in the usual form; no bytes for no bytes. */
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

/** Number of digits beyond microseconds of a time in quotes. */
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
