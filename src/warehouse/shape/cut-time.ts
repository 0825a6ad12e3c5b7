import { copyText } from '../../lib/json-compact.ts';

/**
 * Times with a finer fraction than microseconds, which no column holds. They are cut here, for every way out: databases
 * would round them or refuse them, each in its own way, and a time must never become a later one.
 */

/** Where the digits of a fraction begin in a time in quotes, and those beyond microseconds. */
const FRACTION = 21;
const BEYOND_MICROSECONDS = FRACTION + 6;
/** Length of the shortest time in quotes that has such digits: seven, and no offset. */
const SHORTEST = BEYOND_MICROSECONDS + 2;

/** How many digits beyond microseconds a time in quotes has, without escapes. */
function digitsBeyond(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < SHORTEST) return 0;
  let i = from + FRACTION;
  while (isDigit(bytes[i])) i += 1;
  return Math.max(i - from - BEYOND_MICROSECONDS, 0);
}

/** Copies a time in quotes without these digits; otherwise as `copyText` does. */
export function copyTime(bytes: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  const end = copyText(bytes, from, to, out, at);
  const beyond = digitsBeyond(out, at, end);
  if (beyond > 0) out.copyWithin(at + BEYOND_MICROSECONDS, at + BEYOND_MICROSECONDS + beyond, end);
  return end - beyond;
}

/** The same of a time that is all there is, in place. */
export function cutTime(time: Uint8Array): Uint8Array {
  return time.length < SHORTEST ? time : time.subarray(0, copyTime(time, 0, time.length, time, 0));
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39;
}
