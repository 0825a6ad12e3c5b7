import { isUtf8 } from 'node:buffer';
import { nameKind } from '../../../core/data-names.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  JsonFault,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipKey,
  skipScalar,
  skipValue,
  skipWhite,
} from '../../../lib/json-text.ts';
import type { ColumnType } from '../../definition.ts';
import { readColumn } from '../../shape/fit.ts';
import { seemsMap } from './maps.ts';
import { type Kind, Place } from './place.ts';

const LETTER_N = 0x6e;
/** At so many names of one object it is asked whether they are data, and beyond the most they are taken to be. */
const ASKED_AT = 512;
const MOST_NAMES = 1024;

/** Places that may still be remembered; shared by all that learn at once, so that memory has a bound. */
export interface Budget {
  left: number;
}

/** The columns a text or a number may fit, the narrowest first, and what it is otherwise. */
const TEXTS = ['date', 'timestamp'] as const satisfies readonly (ColumnType & Kind)[];
const NUMBERS = ['integer', 'decimal'] as const satisfies readonly (ColumnType & Kind)[];

/** Looks at documents and remembers what stands where: names, types and counts. */
export class Observer {
  readonly root = new Place(0);
  /** Documents that are no JSON of the kind that becomes rows. */
  unreadable = 0;
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** @param document one JSON value, with nothing around it */
  add(document: Buffer): void {
    try {
      // All of it first: what turns out to be broken leaves no trace.
      if (skipValue(document, 0, 1) !== document.length || !isUtf8(document)) this.unreadable += 1;
      else {
        this.root.seen += 1;
        this.#value(this.root, document, 0, 1);
      }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      this.unreadable += 1;
    }
  }

  /** Returns the index after the value. */
  #value(place: Place, bytes: Buffer, at: number, depth: number): number {
    const c = bytes[at] as number;
    if (c === OPEN_BRACE) return this.#object(place, bytes, at, depth);
    if (c === OPEN_BRACKET) return this.#array(place, bytes, at, depth);
    const end = skipValue(bytes, at, depth);
    if (c === LETTER_N) place.nulls += 1;
    else place.kinds[kindOf(bytes, at)] += 1;
    if (c === QUOTE && end === at + 2) place.empty += 1;
    return end;
  }

  #object(place: Place, bytes: Buffer, at: number, depth: number): number {
    place.kinds.object += 1;
    const nth = place.kinds.object;
    let i = skipWhite(bytes, at + 1);
    while (bytes[i] !== CLOSE_BRACE) {
      const end = Math.abs(skipKey(bytes, i));
      const member = this.#member(place, JSON.parse(bytes.toString('utf8', i, end)) as string, nth);
      const from = skipColon(bytes, end);
      const to =
        member === null ? skipValue(bytes, from, depth + 1) : this.#value(member, bytes, from, depth + 1);
      i = afterComma(bytes, to);
    }
    return i + 1;
  }

  #array(place: Place, bytes: Buffer, at: number, depth: number): number {
    place.kinds.array += 1;
    let i = skipWhite(bytes, at + 1);
    while (bytes[i] !== CLOSE_BRACKET) {
      place.items ??= this.#place(place.kinds.array);
      if (place.items !== null) place.items.seen += 1;
      const to =
        place.items === null ? skipValue(bytes, i, depth + 1) : this.#value(place.items, bytes, i, depth + 1);
      i = afterComma(bytes, to);
    }
    return i + 1;
  }

  /** Where a member is counted; null when there are too many places. */
  #member(place: Place, name: string, nth: number): Place | null {
    const known = place.members?.get(name);
    if (known !== undefined) {
      // The same name once more in one object is no further object that has it.
      if (known.last !== nth) known.seen += 1;
      known.last = nth;
      return known;
    }
    if (place.isMap || nameKind(name) === 'data') {
      place.values ??= this.#place(nth);
      if (place.values === null) place.lost += 1;
      else place.values.seen += 1;
      return place.values;
    }
    const size = place.members?.size ?? 0;
    if (size >= MOST_NAMES || (size === ASKED_AT && seemsMap(place))) {
      place.collapse();
      return this.#member(place, name, nth);
    }
    const member = this.#place(nth);
    if (member === null) place.lost += 1;
    else {
      member.seen = 1;
      member.last = nth;
      (place.members ??= new Map()).set(name, member);
    }
    return member;
  }

  #place(since: number): Place | null {
    if (this.#budget.left <= 0) return null;
    this.#budget.left -= 1;
    return new Place(since);
  }
}

/** By what the shaper asks of values, so that a column made by it takes them. */
function kindOf(bytes: Buffer, at: number): Kind {
  const c = bytes[at];
  if (c === QUOTE) return TEXTS.find((type) => readColumn(type, bytes, at, 1) !== 0) ?? 'text';
  if (c === 0x74 || c === 0x66) return 'boolean';
  skipScalar(bytes, at);
  return NUMBERS.find((type) => readColumn(type, bytes, at, 1) !== 0) ?? 'huge';
}

function afterComma(bytes: Buffer, at: number): number {
  const i = skipWhite(bytes, at);
  return bytes[i] === CLOSE_BRACE || bytes[i] === CLOSE_BRACKET ? i : skipWhite(bytes, i + 1);
}
