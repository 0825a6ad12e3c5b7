/**
 * Values that a column takes, but that databases read each in their own way or refuse: `62.0` and `1e2` in a column of integers, and
 * the forms of ISO 8601 other than the usual one. They are written as `62`, `100` and a time in UTC.
 */

/** Characters of the longest number and the longest time that are looked at, and the largest exponent. */
const LONGEST = 200;
const LARGEST_EXPONENT = 99;
const SHORTEST_TIME = 13;

/** The whole number of 64 bits that a number is exactly; null when it is none. */
export function wholeNumber(number: string): string | null {
  if (number.length > LONGEST) return null;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? [];
  const point = Number(exponent) - fraction.length;
  if (whole === '' || Math.abs(Number(exponent)) > LARGEST_EXPONENT) return null;
  const digits = (whole + fraction).replace(/0+$/, '');
  if (digits === '') return '0';
  const zeros = point + whole.length + fraction.length - digits.length;
  if (zeros < 0) return null;
  const value = BigInt(`${sign}${digits}${'0'.repeat(zeros)}`);
  return BigInt.asIntN(64, value) === value ? String(value) : null;
}

/** Groups: year; month and day, week and its day, or day of the year; hour, minute, second, fraction; sign and parts of the offset. */
const ISO_8601 =
  /^(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d)|-?W(\d\d)-?([1-7])|-?(\d{3}))[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(?: ?(?:[Zz]|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?))?$/;

const DAY_MS = 86_400_000;

/**
 * The instant of a time in any form of ISO 8601 with a day and an hour, in UTC; null for other texts. `24:00:00` is the start of the
 * next day, a leap second too.
 */
export function instantText(time: string): string | null {
  if (time.length < SHORTEST_TIME || time.length > LONGEST) return null;
  const found = ISO_8601.exec(time);
  // An hour alone is a time only with an offset.
  if (found === null || /[Tt ]\d\d$/.test(time)) return null;
  const number = (group: number): number => Number(found[group] ?? 0);
  const [hour, minute, second, fraction = ''] = [number(9), number(10), number(11), found[12]];
  const offset = (number(14) * 3600 + number(15) * 60 + number(16)) * (found[13] === '-' ? -1 : 1);
  const isEndOfDay = hour === 24 && minute === 0 && second === 0 && !/[1-9]/.test(fraction);
  if ((hour > 23 && !isEndOfDay) || minute > 59 || second > 60) return null;
  if (number(14) > 14 || number(15) > 59 || number(16) > 59) return null;
  const day = dayStart(found);
  if (day === null) return null;
  const instant = day + (hour * 3600 + minute * 60 + second - offset) * 1000;
  if (second === 60 && instant % DAY_MS !== 0) return null;
  const text = new Date(instant).toISOString();
  if (!/^\d{4}-/.test(text) || text.startsWith('0000')) return null;
  return `${text.slice(0, 19)}${fraction === '' ? '' : `.${fraction.slice(0, 6)}`}Z`;
}

/** The start of the day that the groups name, in milliseconds since the epoch; null when there is no such day. */
function dayStart(found: RegExpExecArray): number | null {
  const year = Number(found[1]);
  const dayOf = (month: number, day: number): number => new Date(0).setUTCFullYear(year, month, day);
  if (year === 0) return null;
  if (found[8] !== undefined) {
    const start = dayOf(0, Number(found[8]));
    return Number(found[8]) > 0 && new Date(start).getUTCFullYear() === year ? start : null;
  }
  if (found[6] !== undefined) {
    // Week 1 has January 4; weeks begin on Monday.
    const weekday = (new Date(dayOf(0, 4)).getUTCDay() + 6) % 7;
    const start = dayOf(0, 4 - weekday + (Number(found[6]) - 1) * 7);
    // The year of a week is the year of its Thursday.
    const isWeek = Number(found[6]) > 0 && new Date(start + 3 * DAY_MS).getUTCFullYear() === year;
    return isWeek ? start + (Number(found[7]) - 1) * DAY_MS : null;
  }
  const [month, day] = [Number(found[2] ?? found[4]), Number(found[3] ?? found[5])];
  const start = dayOf(month - 1, day);
  return new Date(start).getUTCMonth() === month - 1 && new Date(start).getUTCDate() === day ? start : null;
}
