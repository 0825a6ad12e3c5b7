const BYTES: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

const MILLISECONDS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * Bytes of a size such as `128MiB`, `10MB`, `1.5 GiB`, `512` or a plain number. Units are case-insensitive; `MB` is a
 * million, `MiB` is 2^20. Fractions are rounded to whole bytes.
 * @throws RangeError when it is not a size or not a safe integer of bytes.
 */
export function parseBytes(value: string | number): number {
  return scale(value, BYTES, 'b', 'a size such as 10MB or 128MiB');
}

/** The shortest exact size that `parseBytes` reads back: `128MiB`, `10MB`, `1234B`. */
export function formatBytes(bytes: number): string {
  return format(bytes, ['TiB', 'TB', 'GiB', 'GB', 'MiB', 'MB', 'KiB', 'KB'], BYTES, 'B');
}

/**
 * Milliseconds of a duration such as `500ms`, `30s`, `5m`, `1.5h`, `7d`, `2w`, or a plain number of milliseconds.
 * @throws RangeError when it is not a duration or not a safe integer of milliseconds.
 */
export function parseDuration(value: string | number): number {
  return scale(value, MILLISECONDS, 'ms', 'a duration such as 500ms, 30s, 5m or 7d');
}

/** The largest unit that gives the exact duration back: `5m`, `7d`, `1500ms`; weeks are written as days. */
export function formatDuration(ms: number): string {
  return format(ms, ['d', 'h', 'm', 's'], MILLISECONDS, 'ms');
}

/** A size to read, rounded: `512 B`, `1.4 KiB`, `117.7 MiB`. */
export function aboutBytes(bytes: number): string {
  const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const count = Math.round((bytes / 2 ** (10 * power)) * 10) / 10;
  return `${count} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

/** A duration to read, rounded up, in its two largest units: `45s`, `3m 20s`, `2d 4h`; at least `1s`. */
export function aboutDuration(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(seconds / unit));
  const parts = Object.entries({
    d: days ?? 0,
    h: (hours ?? 0) % 24,
    m: (minutes ?? 0) % 60,
    s: seconds % 60,
  });
  const first = parts.findIndex(([, count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([, count]) => count > 0);
  return shown.map(([unit, count]) => `${count}${unit}`).join(' ');
}

/** @throws RangeError unless the value is `number` or `number unit`, not negative, and a safe integer once scaled */
function scale(
  value: string | number,
  units: Readonly<Record<string, number>>,
  base: string,
  what: string,
): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(String(value));
  const unit = match?.[2]?.toLowerCase();
  const factor = units[unit === undefined || unit === '' ? base : unit];
  const scaled = Math.round(Number(match?.[1]) * (factor ?? Number.NaN));
  if (!Number.isSafeInteger(scaled)) throw new RangeError(`${JSON.stringify(value)} is not ${what}`);
  return scaled;
}

/** Uses the unit with the smallest whole number: 10,000,000 is `10MB` and 10,485,760 is `10MiB`. */
function format(
  value: number,
  names: readonly string[],
  units: Readonly<Record<string, number>>,
  base: string,
): string {
  let best = { count: value, name: base };
  for (const name of names) {
    const count = value / (units[name.toLowerCase()] ?? 1);
    if (value !== 0 && Number.isInteger(count) && count < best.count) best = { count, name };
  }
  return `${best.count}${best.name}`;
}
