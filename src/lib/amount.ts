const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** A number of bytes as text, rounded: `258 MB`, `1.4 GB`. */
export function formatAmount(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(unit > 0 && value < 10 ? 1 : 0)} ${UNITS[unit] ?? ''}`;
}
