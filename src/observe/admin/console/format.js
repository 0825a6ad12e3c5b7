// Formats of numbers and times, in English like the console.

const GROUPED = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 });
const ONE_DIGIT = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 });

/** 12,345 */
export function count(value) {
  return GROUPED.format(value);
}

/** 12K, for axes and narrow places. */
export function shortCount(value) {
  return value < 10_000 ? ONE_DIGIT.format(value) : SHORT.format(value);
}

/** Events a second: 0, 3.4, 2,013 */
export function rate(value) {
  return value < 20 ? ONE_DIGIT.format(value) : GROUPED.format(value);
}

/** 12.5 % */
export function percent(share) {
  return `${ONE_DIGIT.format(share * 100)} %`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** 1.2 MiB */
export function bytes(value) {
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit > 0 && size < 100 ? ONE_DIGIT.format(size) : GROUPED.format(size)} ${UNITS[unit]}`;
}

/** A duration in its two largest units: 4 s, 3 min 20 s, 2 d 4 h. */
export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return join(minutes, 'min', seconds % 60, 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return join(hours, 'h', minutes % 60, 'min');
  return join(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function join(large, largeUnit, small, smallUnit) {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** The local time: 14:03:09 */
export function clock(at) {
  return CLOCK.format(new Date(at));
}

/** The local time, with the day unless it is today. */
export function moment(at) {
  const day = DAY.format(new Date(at));
  return day === DAY.format(new Date()) ? clock(at) : `${day}, ${clock(at)}`;
}

/** A long id as its beginning and end. */
export function shortId(id) {
  return id.length <= 18 ? id : `${id.slice(0, 8)}…${id.slice(-6)}`;
}

/** 1 event, 2 events */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}
