import { ServiceInputError } from './errors.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$/;

/** @throws ServiceInputError unless the value is a UUID, of any version. */
export function uuid(parameter: string, value: string): string {
  if (!UUID.test(value)) throw new ServiceInputError(parameter, `must be a UUID, not ${quote(value)}`);
  return value;
}

/** @throws ServiceInputError unless it is a calendar day `YYYY-MM-DD`. */
export function day(parameter: string, value: string): string {
  if (!DAY.test(value) || !isDay(value)) {
    throw new ServiceInputError(parameter, `must be a date YYYY-MM-DD, not ${quote(value)}`);
  }
  return value;
}

/** @throws ServiceInputError unless it is `YYYY-MM-DD` or an ISO 8601 date-time. */
export function dayOrTime(parameter: string, value: string): string {
  const fits = DAY.test(value) ? isDay(value) : DATE_TIME.test(value) && isDay(value.slice(0, 10));
  if (!fits || Number.isNaN(Date.parse(value))) {
    throw new ServiceInputError(
      parameter,
      `must be YYYY-MM-DD or an ISO 8601 date-time, not ${quote(value)}`,
    );
  }
  return value;
}

/** The service reads a bare start day as its first second and a bare end day as its last one. */
export function dateRange(start: string, end: string | undefined): void {
  dayOrTime('start', start);
  if (end === undefined) return;
  dayOrTime('end', end);
  const last = DAY.test(end) ? Date.parse(`${end}T23:59:59Z`) : instant(end);
  if (last < instant(start)) throw new ServiceInputError('end', `is before start: ${end} < ${start}`);
}

/** @throws ServiceInputError unless it is a whole number from `least` to `most`. */
export function wholeNumber(parameter: string, value: number, least: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new ServiceInputError(parameter, `must be a whole number ${range}, not ${value}`);
  }
  return value;
}

/** @throws ServiceInputError when it is empty or has more than `most` characters. */
export function text(parameter: string, value: string, most: number = Number.MAX_SAFE_INTEGER): string {
  if (value === '') throw new ServiceInputError(parameter, 'must not be empty');
  // Characters, not UTF-16 units: an emoji counts once.
  const length = value.length <= most ? value.length : Array.from(value).length;
  if (length > most)
    throw new ServiceInputError(parameter, `must have at most ${most} characters, has ${length}`);
  return value;
}

/** @throws ServiceInputError unless it is one of the values: for closed sets only, never for a non-exhaustive enum. */
export function oneOf<T>(parameter: string, value: T, allowed: readonly T[]): T {
  if (!allowed.includes(value)) {
    throw new ServiceInputError(
      parameter,
      `must be one of ${allowed.join(', ')}, not ${quote(String(value))}`,
    );
  }
  return value;
}

/** A date-time without an offset is UTC to us: this only compares two of them. */
function instant(value: string): number {
  return Date.parse(DAY.test(value) || /(Z|[+-]\d{2}:?\d{2})$/.test(value) ? value : `${value}Z`);
}

/** Date.parse would roll 2026-02-30 over to March. */
function isDay(value: string): boolean {
  const ms = Date.parse(`${value}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(value);
}

function quote(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}
