import { isCalendarDay } from '../../lib/calendar-day.ts';
import { isUuid } from '../../lib/uuid.ts';
import { ServiceInputError } from './errors.ts';

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$/;

type Optional<T> = T | undefined;

/** @throws ServiceInputError unless the value is a UUID of any version, or missing */
export function uuid<T extends Optional<string>>(parameter: string, value: T): T {
  return need(parameter, value, isUuid, 'a UUID');
}

/**
 * The service reads a bare start day as its first second and a bare end day as its last one.
 * @throws ServiceInputError unless both are `YYYY-MM-DD` or an ISO 8601 date-time, and in order
 */
export function dateRange(start: string, end: string | undefined): void {
  for (const [parameter, value] of Object.entries({ start, end }))
    need(parameter, value, isDayOrTime, 'YYYY-MM-DD or an ISO 8601 date-time');
  if (end === undefined) return;
  const last = DAY.test(end) ? Date.parse(`${end}T23:59:59Z`) : instant(end);
  if (last < instant(start)) throw new ServiceInputError('end', `is before start: ${end} < ${start}`);
}

/** @throws ServiceInputError unless it is a whole number from `least` to `most`, or missing */
export function wholeNumber<T extends Optional<number>>(
  parameter: string,
  value: T,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): T {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least && value <= most)) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw new ServiceInputError(parameter, `must be a whole number ${range}, not ${value}`);
}

/** @throws ServiceInputError when it is empty */
export function text<T extends Optional<string>>(parameter: string, value: T): T {
  if (value === '') throw new ServiceInputError(parameter, 'must not be empty');
  return value;
}

/** For closed sets only, not for enums that may grow. @throws ServiceInputError unless it is one of the values, or missing */
export function oneOf<T>(parameter: string, value: T, allowed: readonly T[]): T {
  return need(parameter, value, (one) => allowed.includes(one), `one of ${allowed.join(', ')}`);
}

function need<T>(
  parameter: string,
  value: T,
  isValid: (value: Exclude<T, undefined>) => boolean,
  what: string,
): T {
  if (value === undefined || isValid(value as Exclude<T, undefined>)) return value;
  throw new ServiceInputError(parameter, `must be ${what}, not ${quote(String(value))}`);
}

/** Milliseconds since the epoch; a date-time without an offset counts as UTC. */
function instant(value: string): number {
  return Date.parse(DAY.test(value) || /(Z|[+-]\d{2}:?\d{2})$/.test(value) ? value : `${value}Z`);
}

function isDayOrTime(value: string): boolean {
  return (
    isCalendarDay(value) ||
    (DATE_TIME.test(value) && isCalendarDay(value.slice(0, 10)) && !Number.isNaN(Date.parse(value)))
  );
}

function quote(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}
