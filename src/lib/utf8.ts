/** Texts up to this length are written faster here than by a call into Node. */
const SHORT = 64;

/** Most bytes of a UTF-16 unit. */
export const UNIT_BYTES = 3;

/** Length of a text in UTF-8. */
export function byteLength(text: string): number {
  if (text.length > SHORT) return Buffer.byteLength(text);
  for (let unit = 0; unit < text.length; unit += 1) {
    if (text.charCodeAt(unit) > 127) return Buffer.byteLength(text);
  }
  return text.length;
}

/**
 * Writes a text as UTF-8.
 * @param bytes its `byteLength`
 * @returns where it ends
 */
export function writeUtf8(into: Buffer, at: number, text: string, bytes: number): number {
  if (bytes > SHORT || bytes !== text.length) return at + into.write(text, at);
  // As many bytes as units: it is ASCII.
  for (let unit = 0; unit < bytes; unit += 1) into[at + unit] = text.charCodeAt(unit);
  return at + bytes;
}
