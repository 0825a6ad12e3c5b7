import {
  beginsWith,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  LOWER_N,
  OPEN_BRACE,
  OPEN_BRACKET,
  POINT,
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
import type { Kind, SeenField } from './seen-field.ts';

/** Values at deeper levels are not counted. */
const DEEPEST = 32;
const [LOWER_E, UPPER_E] = [0x65, 0x45];
/** First bytes of true and false. */
const [TRUE, FALSE] = [0x74, 0x66];

/** Thrown where the part of a large document ends that is counted. */
class Enough extends Error {}
export const ENOUGH_SEEN = new Enough();

/** Counts the fields of one JSON document, reading its bytes. */
export abstract class Walk {
  readonly #bytes: Buffer;
  readonly #at: number;
  readonly #most: number;

  /** @param at time, in milliseconds since the epoch @param most bytes of the document that are counted */
  constructor(bytes: Buffer, at = 0, most = bytes.length) {
    this.#bytes = bytes;
    this.#at = at;
    this.#most = most;
  }

  /**
   * The field of a member that was not guessed; null when no more fields are remembered.
   * @param nth number of the object among those of the field around
   */
  protected abstract memberOf(around: SeenField, name: string, nth: number): SeenField | null;

  /** Adds a field; null when no more are remembered. @param name, since as in `SeenField` */
  protected abstract add(name: string | null, around: SeenField, since: number): SeenField | null;

  protected textAt(_bytes: Buffer, _at: number): Kind {
    return 'text';
  }

  protected numberAt(bytes: Buffer, at: number, end: number): Kind {
    return isWhole(bytes, at, end) ? 'integer' : 'decimal';
  }

  /** Called for the first value of a kind. */
  protected becameKind(_place: SeenField, _kind: Kind): void {}

  /** @returns the index after the value @throws JsonFault, ENOUGH_SEEN; what is before that is counted */
  value(place: SeenField, at: number, depth: number): number {
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
      case LOWER_N:
        place.nulls += 1;
        return skipScalar(bytes, at);
      case TRUE:
      case FALSE:
        this.#kind(place, 'boolean');
        return skipScalar(bytes, at);
      default: {
        const end = skipNumber(bytes, at);
        this.#kind(place, this.numberAt(bytes, at, end));
        return end;
      }
    }
  }

  #object(place: SeenField, at: number, depth: number): number {
    const bytes = this.#bytes;
    const nth = place.kinds.object;
    let before: SeenField | null = null;
    let i = skipWhite(bytes, at + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    for (;;) {
      if (i > this.#most) throw ENOUGH_SEEN;
      const guess: SeenField | null = place.isMap ? null : before === null ? place.head : before.next;
      let member: SeenField | null;
      let end: number;
      if (guess !== null && beginsWith(bytes, i, guess.key)) {
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

  #unexpected(place: SeenField, from: number, to: number, nth: number): SeenField | null {
    return this.memberOf(place, JSON.parse(this.#bytes.toString('utf8', from, to)) as string, nth);
  }

  /** The value of a member. @returns the index after it */
  protected inside(member: SeenField, from: number, nth: number, depth: number): number {
    // A name that is repeated in one object counts once.
    if (member.within !== nth || member.name === null) member.seen += 1;
    member.within = nth;
    member.last = this.#at;
    return this.value(member, from, depth + 1);
  }

  #array(place: SeenField, at: number, depth: number): number {
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

  #kind(place: SeenField, kind: Kind): void {
    place.kinds[kind] += 1;
    if (place.kinds[kind] > 1) return;
    place.noteKind(kind, this.#at);
    this.becameKind(place, kind);
  }
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
