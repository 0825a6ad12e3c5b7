import { seemsMap } from '../warehouse/learned/infer/maps.ts';
import { type Ids, nameKind, namesAnId } from '../core/data-names.ts';
import { NAMES } from '../core/member-names.ts';
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
} from '../lib/json-text.ts';
import { Field, type Kind } from './field.ts';

/** Deeper values are stepped over. */
const DEEPEST = 32;
/** Names of one object that are fields; with more they are data. */
const MOST_NAMES = 256;
/** A name that may be data is a field when nearly all objects have it, and there were enough of them. */
const ENOUGH = 20;
const STEADY = 0.9;
const MOST_DOUBTS = 64;
/** Fields inside one that may become a field itself. */
const MOST_ASIDE = 64;
const [POINT, LOWER_E, UPPER_E, LETTER_N, LETTER_T, LETTER_F] = [0x2e, 0x65, 0x45, 0x6e, 0x74, 0x66];

/** What a walk may do, and what it tells. */
export interface Walked {
  /** Number of this document among those of its type. */
  readonly nth: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly body: Buffer;
  /** Ends before the first byte behind so many of a large document. */
  readonly most: number;
  /** Ids in it, which are no names of fields wherever they stand. */
  readonly ids: Ids;
  /** Places of objects whose names are data, as the service says. */
  readonly maps: ReadonlySet<string>;
  /** Whether one more field may be remembered. */
  readonly mayAdd: () => boolean;
  /** Whether one more may be counted whose name may be data. */
  readonly mayDoubt: () => boolean;
  /** @param kind null for a field that is new; else it was there, and never was that */
  readonly tell: (field: Field, kind: Kind | null) => void;
  /** Only counted in case that its name is none that is data. */
  readonly isAside?: boolean;
  /** Fields that are no longer remembered apart from others. */
  readonly drop: (count: number) => void;
}

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
  /** The member whose value comes next, when its name may be data. */
  #doubt: Field | null = null;

  constructor(walked: Walked) {
    this.#walked = walked;
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
        member = field.isMap && field.values !== null ? field.values : this.#member(field, i, end, nth);
        if (member !== null && member.name !== null) {
          if (before === null) field.head = member;
          else before.next = member;
        }
      }
      const from = skipColon(bytes, end);
      const doubt = this.#doubt;
      this.#doubt = null;
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
    field.items ??= this.#new(null, field, field.kinds.array);
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

  /** Where a member is counted whose name was not expected; null when nothing more is remembered. */
  #member(field: Field, from: number, to: number, nth: number): Field | null {
    const name = JSON.parse(this.#bytes.toString('utf8', from, to)) as string;
    const known = field.members?.get(name);
    if (known !== undefined) return known;
    if (field.isMap || this.#isData(field, name)) return this.#values(field, nth);
    if (!NAMES.has(name) && nameKind(name) === 'doubtful')
      return this.#steady(field, name, nth) ?? this.#values(field, nth);
    if ((field.members?.size ?? 0) >= MOST_NAMES) return this.#collapse(field, nth);
    const member = this.#new(name, field, nth);
    if (member === null) return null;
    member.seen = 1;
    member.within = nth;
    (field.members ??= new Map()).set(name, member);
    // Not before it is there: it can be what shows that names are data.
    if (!seemsMap(field)) return member;
    // It is counted again, with the others.
    member.seen = 0;
    return this.#collapse(field, nth);
  }

  /** All members whose names are data, as one. */
  #values(field: Field, nth: number): Field | null {
    field.values ??= this.#new(null, field, nth);
    return field.values;
  }

  #collapse(field: Field, nth: number): Field | null {
    const count = field.size;
    const had = field.values !== null;
    field.collapse();
    this.#walked.drop(count - field.size);
    const { values } = field;
    if (values !== null && !had) this.#walked.tell(values, null);
    return values ?? this.#values(field, nth);
  }

  /** Whether the name says what somebody has, instead of what a format calls it. */
  #isData(field: Field, name: string): boolean {
    if (NAMES.has(name)) return this.#isDocumentedMap(field);
    return namesAnId(name, this.#walked.ids) || nameKind(name) === 'data' || this.#isDocumentedMap(field);
  }

  /** A field whose name may be data, once it is in nearly all of enough objects; with all that was counted before. */
  #steady(field: Field, name: string, nth: number): Field | null {
    if (this.#walked.isAside === true) return null;
    const doubts = (field.doubts ??= new Map<string, Field>());
    let doubt = doubts.get(name);
    if (doubt === undefined) {
      if (doubts.size >= MOST_DOUBTS) forgetUnsteady(doubts, nth);
      if (doubts.size >= MOST_DOUBTS || !this.#walked.mayDoubt()) return null;
      doubt = new Field(name, field, this.#walked.nth, nth, this.#at);
      doubts.set(name, doubt);
    }
    this.#doubt = doubt;
    if (!isSteady(doubt, nth) || !this.#mayAddAll(doubt)) return null;
    this.#doubt = null;
    doubts.delete(name);
    (field.members ??= new Map()).set(name, doubt);
    const { values } = field;
    if (values !== null) {
      const count = field.size;
      values.give(doubt);
      field.dropEmptyValues();
      this.#walked.drop(count - field.size);
    }
    // What was there from the start is nothing new.
    if (doubt.since > ENOUGH) this.#walked.tell(doubt, null);
    return doubt;
  }

  #mayAddAll(doubt: Field): boolean {
    let added = 0;
    for (const _ of doubt.all()) {
      if (!this.#walked.mayAdd()) {
        this.#walked.drop(added);
        return false;
      }
      added += 1;
    }
    return true;
  }

  #isDocumentedMap(field: Field): boolean {
    const { maps } = this.#walked;
    if (maps.size === 0 || !maps.has(field.path)) return false;
    field.isMap = true;
    return true;
  }

  #new(name: string | null, around: Field, since: number): Field | null {
    const { nth, at, mayAdd, tell } = this.#walked;
    if (!mayAdd()) return null;
    const field = new Field(name, around, nth, since, at);
    tell(field, null);
    return field;
  }
}

/** Nearly all objects have it since the first of them; there are enough, counting this one. */
function isSteady({ seen, since, within }: Field, nth: number): boolean {
  const objects = nth - since + 1;
  return objects >= ENOUGH && seen + (within === nth ? 0 : 1) >= objects * STEADY;
}

/** Makes room for others. */
function forgetUnsteady(doubts: Map<string, Field>, nth: number): void {
  for (const [name, doubt] of doubts)
    if (nth - doubt.since + 1 >= ENOUGH && !isSteady(doubt, nth)) doubts.delete(name);
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
