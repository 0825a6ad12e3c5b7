const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;

/** Seconds since the epoch, and microseconds behind them. */
export interface Instant {
  readonly seconds: number;
  readonly micros: number;
}

const found = { seconds: 0, micros: 0 };

/**
 * The time that stands at `from`, without its quotes, as `fitsTimestamp` takes it; without an offset it is UTC. What is finer
 * than microseconds is cut off, never rounded.
 * @returns valid until the next call
 */
export function instantOf(bytes: Uint8Array, from: number, to: number): Instant {
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
