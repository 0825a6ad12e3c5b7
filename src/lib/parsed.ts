import { isRecord } from './is-record.ts';

/** What JSON says that others wrote; null where it is none: the parser's own words would quote what it read. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The members of a JSON object; none of anything else. */
export function membersIn(text: string): Readonly<Record<string, unknown>> {
  const value = jsonIn(text);
  return isRecord(value) ? value : {};
}

/** What JSON says; the text itself where it is none. */
export function jsonOrSame(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** What percent signs stand for; the text itself where they stand for nothing. */
export function decodedOrSame(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
