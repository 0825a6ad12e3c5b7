import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  JsonFault,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipKey,
  skipNumber,
  skipScalar,
  skipString,
  skipValue,
  skipWhite,
  unexpected,
} from '../../lib/json-text.ts';
import type { Field, Kind } from './field.ts';
import { Members, type Walked } from './members.ts';

/** Deeper values are stepped over. */
const DEEPEST = 32;
/** Fields inside one that may become a field itself. */
const MOST_ASIDE = 64;
const [POINT, LOWER_E, UPPER_E, LETTER_N, LETTER_T, LETTER_F] = [0x2e, 0x65, 0x45, 0x6e, 0x74, 0x66];

/** The rest of a document that is larger than what is looked at. */
class Enough extends Error {}
const ENOUGH_SEEN = new Enough();

/**
 * Looks at one JSON document as bytes, and counts in the fields what stands where. A name that looks like data (an id, a day, an
 * address, a word of a person) becomes no field: `nameKind` and the rules beside it say which.
 * @returns false for a document that is no JSON; what stands in front of the fault was counted then
 */
export function walk(root: Field, walked: Walked): boolean {
  const { body, at } = walked;
  root.seen += 1;
  root.last = at;
  try {
    new Walk(walked).value(root, skipWhite(body, 0), 1);
    return true;
  } catch (error) {
    if (error === ENOUGH_SEEN) return true;
    if (error instanceof JsonFault) return false;
    throw error;
  }
}

class Walk {
  readonly #walked: Walked;
  readonly #bytes: Buffer;
  readonly #at: number;
  readonly #most: number;
  readonly #members: Members;

  constructor(walked: Walked) {
    this.#walked = walked;
    this.#members = new Members(walked);
    this.#bytes = walked.body;
    this.#at = walked.at;
    this.#most = walked.most;
  }

  /** @returns the index after the value */
  value(field: Field, at: number, depth: number): number {
    const bytes = this.#bytes;
    switch (bytes[at] as number) {
      case QUOTE:
        this.#kind(field, 'text');
        return Math.abs(skipString(bytes, at));
      case OPEN_BRACE:
        this.#kind(field, 'object');
        return depth > DEEPEST ? skipValue(bytes, at, 1) : this.#object(field, at, depth);
      case OPEN_BRACKET:
        this.#kind(field, 'array');
        return depth > DEEPEST ? skipValue(bytes, at, 1) : this.#array(field, at, depth);
      case LETTER_N:
        field.nulls += 1;
        return skipScalar(bytes, at);
      case LETTER_T:
      case LETTER_F:
        this.#kind(field, 'boolean');
        return skipScalar(bytes, at);
      default: {
        const end = skipNumber(bytes, at);
        this.#kind(field, isWhole(bytes, at, end) ? 'integer' : 'decimal');
        return end;
      }
    }
  }

  #object(field: Field, at: number, depth: number): number {
    const bytes = this.#bytes;
    const nth = field.kinds.object;
    let before: Field | null = null;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    for (;;) {
      if (i > this.#most) throw ENOUGH_SEEN;
      const guess: Field | null = field.isMap ? null : before === null ? field.head : before.next;
      let member: Field | null;
      let end: number;
      if (guess !== null && isAt(bytes, i, guess.key)) {
        member = guess;
        end = i + guess.key.length;
      } else {
        end = Math.abs(skipKey(bytes, i));
        member = field.isMap && field.values !== null ? field.values : this.#unexpected(field, i, end, nth);
        if (member !== null && member.name !== null) {
          if (before === null) field.head = member;
          else before.next = member;
        }
      }
      const from = skipColon(bytes, end);
      const doubt = this.#members.takeDoubt();
      if (member === null) i = skipValue(bytes, from, 1);
      else {
        i = this.#inside(member, from, nth, depth);
        if (member.name !== null) before = member;
        if (doubt !== null) this.#aside(doubt, from, nth, depth);
      }
      i = skipWhite(bytes, i);
      if (bytes[i] === CLOSE_BRACE) return i + 1;
      i = skipComma(bytes, i);
    }
  }

  #unexpected(field: Field, from: number, to: number, nth: number): Field | null {
    const name = JSON.parse(this.#bytes.toString('utf8', from, to)) as string;
    return this.#members.of(field, name, nth);
  }

  #inside(member: Field, from: number, nth: number, depth: number): number {
    // The same name once more in one object is no further object that has it.
    if (member.within !== nth || member.name === null) member.seen += 1;
    member.within = nth;
    member.last = this.#at;
    return this.value(member, from, depth + 1);
  }

  /** Counts a member by itself that was counted among all those whose names are data. */
  #aside(doubt: Field, from: number, nth: number, depth: number): void {
    let left = MOST_ASIDE - 1 - doubt.size;
    const { mayDoubt } = this.#walked;
    const mayAdd = () => (left -= 1) >= 0 && mayDoubt();
    const silent = { ...this.#walked, isAside: true, mayAdd, tell: () => undefined, drop: () => undefined };
    new Walk(silent).#inside(doubt, from, nth, depth);
  }

  #array(field: Field, at: number, depth: number): number {
    const bytes = this.#bytes;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    field.items ??= this.#members.add(null, field, field.kinds.array);
    const { items } = field;
    for (;;) {
      if (i > this.#most) throw ENOUGH_SEEN;
      if (items === null) i = skipValue(bytes, i, 1);
      else {
        items.seen += 1;
        items.last = this.#at;
        i = this.value(items, i, depth + 1);
      }
      i = skipWhite(bytes, i);
      if (bytes[i] === CLOSE_BRACKET) return i + 1;
      i = skipComma(bytes, i);
    }
  }

  #kind(field: Field, kind: Kind): void {
    const { kinds } = field;
    kinds[kind] += 1;
    if (kinds[kind] > 1) return;
    field.noteKind(kind, this.#at);
    if (field.born === this.#walked.nth) return;
    const others = field.seen - field.nulls - 1;
    // Nothing but null says nothing of what it is; a whole number and a fraction are both numbers.
    const isNumber = kind === 'integer' || kind === 'decimal';
    if (others <= 0 || (isNumber && kinds.integer + kinds.decimal > 1)) return;
    this.#walked.tell(field, kind);
  }
}

function isAt(bytes: Buffer, from: number, key: Buffer): boolean {
  for (let at = 0; at < key.length; at += 1) if (bytes[from + at] !== key[at]) return false;
  return true;
}

function isWhole(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) {
    const c = bytes[at];
    if (c === POINT || c === LOWER_E || c === UPPER_E) return false;
  }
  return true;
}

function skipComma(bytes: Buffer, at: number): number {
  if (bytes[at] !== COMMA) throw unexpected(bytes, at);
  return skipWhite(bytes, at + 1);
}
