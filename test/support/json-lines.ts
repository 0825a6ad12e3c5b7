/** The values of a text that has JSON on each line. */
export function jsonLines<T = Record<string, unknown>>(text: string | Uint8Array): T[] {
  const lines = Buffer.from(text).toString().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}
