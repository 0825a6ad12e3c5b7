import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
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
} from '../../../lib/json-text.ts';
import type { Kind, Place } from './place.ts';

/** Deeper values are stepped over. */
const DEEPEST = 32;
const [POINT, LOWER_E, UPPER_E, LETTER_N, LETTER_T, LETTER_F] = [0x2e, 0x65, 0x45, 0x6e, 0x74, 0x66];

/** The rest of a document that is larger than what is looked at. */
class Enough extends Error {}
export const ENOUGH_SEEN = new Enough();

/** Looks at one JSON document as bytes, and counts in the places what stands where. */
export abstract class Walk {
  readonly #bytes: Buffer;
  readonly #at: number;
  readonly #most: number;

  /** @param at milliseconds since the epoch @param most ends before the first byte behind so many */
  constructor(bytes: Buffer, at = 0, most = bytes.length) {
    this.#bytes = bytes;
    this.#at = at;
    this.#most = most;
  }

  /**
   * Where a member is counted whose name was not expected; null when nothing more is remembered.
   * @param nth of the object among those in this place
   */
  protected abstract memberOf(around: Place, name: string, nth: number): Place | null;

  /** One more place; null when nothing more is remembered. @param name null for what has none @param since as `Place` says */
  protected abstract add(name: string | null, around: Place, since: number): Place | null;

  protected textAt(_bytes: Buffer, _at: number): Kind {
    return 'text';
  }

  protected numberAt(bytes: Buffer, at: number, end: number): Kind {
    return isWhole(bytes, at, end) ? 'integer' : 'decimal';
  }

  /** There was a value of a kind for the first time. */
  protected becameKind(_place: Place, _kind: Kind): void {}

  /** @returns the index after the value @throws JsonFault, ENOUGH_SEEN; what stands in front of it was counted then */
  value(place: Place, at: number, depth: number): number {
    const bytes = this.#bytes;
    switch (bytes[at] as number) {
      case QUOTE: {
        this.#kind(place, this.textAt(bytes, at));
        const end = Math.abs(skipString(bytes, at));
        if (end === at + 2) place.empty += 1;
        return end;
      }
      case OPEN_BRACE:
        this.#kind(place, 'object');
        return depth > DEEPEST ? skipValue(bytes, at, 1) : this.#object(place, at, depth);
      case OPEN_BRACKET:
        this.#kind(place, 'array');
        return depth > DEEPEST ? skipValue(bytes, at, 1) : this.#array(place, at, depth);
      case LETTER_N:
        place.nulls += 1;
        return skipScalar(bytes, at);
      case LETTER_T:
      case LETTER_F:
        this.#kind(place, 'boolean');
        return skipScalar(bytes, at);
      default: {
        const end = skipNumber(bytes, at);
        this.#kind(place, this.numberAt(bytes, at, end));
        return end;
      }
    }
  }

  #object(place: Place, at: number, depth: number): number {
    const bytes = this.#bytes;
    const nth = place.kinds.object;
    let before: Place | null = null;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    for (;;) {
      if (i > this.#most) throw ENOUGH_SEEN;
      const guess: Place | null = place.isMap ? null : before === null ? place.head : before.next;
      let member: Place | null;
      let end: number;
      if (guess !== null && isAt(bytes, i, guess.key)) {
        member = guess;
        end = i + guess.key.length;
      } else {
        end = Math.abs(skipKey(bytes, i));
        member = place.isMap && place.values !== null ? place.values : this.#unexpected(place, i, end, nth);
        if (member !== null && member.name !== null) {
          if (before === null) place.head = member;
          else before.next = member;
        }
      }
      const from = skipColon(bytes, end);
      if (member === null) {
        place.lost += 1;
        i = skipValue(bytes, from, 1);
      } else {
        i = this.inside(member, from, nth, depth);
        if (member.name !== null) before = member;
      }
      i = skipWhite(bytes, i);
      if (bytes[i] === CLOSE_BRACE) return i + 1;
      i = skipComma(bytes, i);
    }
  }

  #unexpected(place: Place, from: number, to: number, nth: number): Place | null {
    return this.memberOf(place, JSON.parse(this.#bytes.toString('utf8', from, to)) as string, nth);
  }

  /** The value of a member. @returns the index after it */
  protected inside(member: Place, from: number, nth: number, depth: number): number {
    // The same name once more in one object is no further object that has it.
    if (member.within !== nth || member.name === null) member.seen += 1;
    member.within = nth;
    member.last = this.#at;
    return this.value(member, from, depth + 1);
  }

  #array(place: Place, at: number, depth: number): number {
    const bytes = this.#bytes;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    place.items ??= this.add(null, place, place.kinds.array);
    const { items } = place;
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

  #kind(place: Place, kind: Kind): void {
    place.kinds[kind] += 1;
    if (place.kinds[kind] > 1) return;
    place.noteKind(kind, this.#at);
    this.becameKind(place, kind);
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
