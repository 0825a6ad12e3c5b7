import { readFileSync } from 'node:fs';
import { Option } from 'commander';
import { messageOf } from '../core/errors.ts';
import { isCalendarDay } from '../lib/calendar-day.ts';
import { usageError } from './io.ts';

/**
 * An option whose text is read as the command line is taken apart.
 * @param fallback its text when it is left out
 */
export function option(
  flags: string,
  description: string,
  read: (text: string) => unknown,
  fallback?: string,
): Option {
  const made = new Option(flags, description);
  made.argParser((text) => readAs(made.long ?? flags, text, read));
  return fallback === undefined ? made : made.default(read(fallback), fallback);
}

/** @throws MillraceError usage that names the option and what it was given */
export function readAs<T>(name: string, text: string, read: (text: string) => T): T {
  try {
    return read(text);
  } catch (error) {
    throw usageError(`${name} ${text}: ${messageOf(error)}`, { cause: error });
  }
}

/** For options that may be repeated. */
export function collect(value: string, values: readonly string[] = []): readonly string[] {
  return [...values, value];
}

/** Numbers from `least` to `most`, both included. */
export function number(least = 0, most = Infinity, kind: 'number' | 'whole number' = 'number') {
  return (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    const fits = kind === 'number' ? Number.isFinite(value) : Number.isSafeInteger(value);
    if (fits && value >= least && value <= most) return value;
    const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new RangeError(`must be a ${kind} ${range}`);
  };
}

export function wholeNumber(least = 0, most = Infinity) {
  return number(least, most, 'whole number');
}

/** Milliseconds since the epoch of a day or a date-time, UTC where it names no zone. */
export function instant(text: string): number {
  const hasZone = DAY.test(text) || /(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const at = isCalendarDay(text.slice(0, 10)) ? Date.parse(hasZone ? text : `${text}Z`) : Number.NaN;
  if (at >= 0) return at;
  throw new RangeError('must be a day or time, such as 2026-11-21 or 2026-11-21T10:00:00Z');
}

/** The same for the end of a span: a day is all of that day. */
export function endInstant(text: string): number {
  return instant(text) + (DAY.test(text) ? 86_400_000 : 0);
}

/** As the archive writes times, to compare with those. */
export function isoOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** `--loaded-at <time>` of a command that writes rows. */
export function loadedAtOption(): Option {
  return option(
    '--loaded-at <time>',
    'value of _loaded_at in every row (default: when the run began)',
    instant,
  );
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

export function httpUrl(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text;
  throw new TypeError('must be a URL of http or https');
}

export function textOf(file: string): string {
  return readFileSync(file, 'utf8');
}

/** `--work <folder>` of a command that can write to a URL. */
export function workOption(): Option {
  return new Option(
    '--work <folder>',
    'with a URL: local folder for what is not finished (default: ./data/work/<URL>)',
  );
}
