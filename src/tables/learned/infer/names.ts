/** PostgreSQL cuts names after 63 bytes; names of views and of nested tables are longer than this. */
const LONGEST_NAME = 46;

/** `heartRate`, `Heart-Rate` → `heart_rate`; never begins with an underscore, as columns of every table do. */
export function snakeCase(name: string): string {
  const plain = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .slice(0, LONGEST_NAME)
    .replaceAll(/^_+|_+$/g, '');
  return /^[a-z]/.test(plain) ? plain : `field_${plain}`.replace(/_$/, '');
}

/** The name, with a number appended when it is taken. Adds it to `taken`. */
export function takeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let n = 2; taken.has(free); n += 1) free = `${name}_${n}`;
  taken.add(free);
  return free;
}
