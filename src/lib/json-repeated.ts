import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  membersOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipValue,
} from './json-text.ts';

/** Makes the hashes of equal names in different objects different. */
const SPREAD = 0x9e3779b1;

/**
 * True when an object of a value, in compact canonical JSON, may name a member twice; false when none does. Many readers refuse such
 * text, DuckDB a whole file for one of them.
 */
export function mayRepeat(bytes: Uint8Array, from: number, to: number): boolean {
  const seen = new Set<number>();
  /** A different number for each open object; 0 for an array. */
  const open: number[] = [];
  let objects = 0;
  let i = from;
  while (i < to) {
    const c = bytes[i] as number;
    i += 1;
    if (c === OPEN_BRACE) open.push((objects += 1));
    else if (c === OPEN_BRACKET) open.push(0);
    else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) open.pop();
    else if (c === QUOTE) {
      let hash = Math.imul(open.at(-1) ?? 0, SPREAD);
      for (let b = bytes[i] as number; b !== QUOTE; b = bytes[(i += 1)] as number) {
        hash = (Math.imul(hash, 31) + b) | 0;
        if (b === BACKSLASH) i += 1;
      }
      i += 1;
      if (bytes[i] !== COLON) continue;
      if (seen.has(hash)) return true;
      seen.add(hash);
    }
  }
  return false;
}

/**
 * The value with each member named once. The members of two objects of the same name are merged; otherwise the last value counts, as
 * for JSON.parse. Everything else keeps its text and its order.
 */
export function mergeRepeated(value: string): string {
  if (value.startsWith('{')) return mergedObject([value]);
  if (!value.startsWith('[')) return value;
  return `[${itemsOf(value).map(mergeRepeated).join(',')}]`;
}

/** @param objects of the same name, in order */
function mergedObject(objects: readonly string[]): string {
  const members = new Map<string, string[]>();
  for (const object of objects) {
    const bytes = Buffer.from(object);
    for (const { name, value } of membersOf(bytes, 0)) {
      const key = bytes.toString('utf8', ...name);
      const values = members.get(key) ?? [];
      const text = bytes.toString('utf8', ...value);
      // An object and another value are not merged: the last one counts.
      const isMerged = text.startsWith('{') && values.at(-1)?.startsWith('{') === true;
      members.set(key, isMerged ? [...values, text] : [text]);
    }
  }
  const merged = [...members].map(([key, values]) => {
    const [only = '', ...more] = values;
    return `${key}:${more.length === 0 ? mergeRepeated(only) : mergedObject(values)}`;
  });
  return `{${merged.join(',')}}`;
}

function itemsOf(array: string): string[] {
  const bytes = Buffer.from(array);
  const items: string[] = [];
  for (let at = 1; bytes[at] !== CLOSE_BRACKET && at < bytes.length;) {
    const end = skipValue(bytes, at, 1);
    items.push(bytes.toString('utf8', at, end));
    at = bytes[end] === COMMA ? end + 1 : end;
  }
  return items;
}
