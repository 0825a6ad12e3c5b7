/** True for an object that is not an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of JSON from others; null when it is invalid. The parser's error would quote the text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The members of a JSON object; none for anything else. */
export function membersIn(text: string): Readonly<Record<string, unknown>> {
  const value = jsonIn(text);
  return isRecord(value) ? value : {};
}

/** The value of JSON; the text itself when it is invalid. */
export function jsonOrSame(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The percent-decoded text; the text itself when it cannot be decoded. */
export function decodedOrSame(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
