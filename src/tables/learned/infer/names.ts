/** PostgreSQL cuts names after 63 bytes; views and numbers are appended to some. */
const LONGEST_NAME = 46;

/** `heartRate`, `Heart-Rate` → `heart_rate`; never with an underscore in front, as the columns of every table have. */
export function snakeCase(name: string): string {
  const plain = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .slice(0, LONGEST_NAME)
    .replaceAll(/^_+|_+$/g, '');
  return /^[a-z]/.test(plain) ? plain : `field_${plain}`.replace(/_$/, '');
}

/** The name, with a number behind it when it is taken. It is taken from then on. */
export function takeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let n = 2; taken.has(free); n += 1) free = `${name}_${n}`;
  taken.add(free);
  return free;
}
