import { ENOUGH, isInNearlyAll, seemsMap } from '../../tables/learned/infer/maps.ts';
import { type Ids, nameKind, namesAnId } from '../../core/data-names.ts';
import { NAMES } from '../../core/member-names.ts';
import { type Kind, SeenField } from '../../tables/learned/infer/seen-field.ts';
import { ENOUGH_SEEN, Walk } from '../../tables/learned/infer/walk.ts';
import { JsonFault, skipWhite } from '../../lib/json-text.ts';

/** Names of one object that are fields; with more they are data. */
const MOST_NAMES = 256;
const MOST_DOUBTS = 64;
/** Fields inside one that may become a field itself. */
const MOST_ASIDE = 64;

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
  readonly tell: (field: SeenField, kind: Kind | null) => void;
  /** Only counted in case that its name is none that is data. */
  readonly isAside?: boolean;
  /** Fields that are no longer remembered apart from others. */
  readonly drop: (count: number) => void;
}

/**
 * Looks at one JSON document as bytes, and counts in the fields what stands where. A name that looks like data (an id, a day, an
 * address, a word of a person) becomes no field: `nameKind` and the rules beside it say which. Of a document that is no JSON, what
 * stands in front of the fault is counted.
 */
export function walk(root: SeenField, walked: Walked): void {
  root.seen += 1;
  root.last = walked.at;
  try {
    new MemoryWalk(walked).value(root, skipWhite(walked.body, 0), 1);
  } catch (error) {
    if (error !== ENOUGH_SEEN && !(error instanceof JsonFault)) throw error;
  }
}

/** Finds the field that a member of an object is counted in: its own, or that of all whose names are data. */
class MemoryWalk extends Walk {
  readonly #walked: Walked;
  /** Where the member whose value comes next is counted by itself as well, because its name may be data. */
  #doubt: SeenField | null = null;

  constructor(walked: Walked) {
    super(walked.body, walked.at, walked.most);
    this.#walked = walked;
  }

  protected override memberOf(field: SeenField, name: string, nth: number): SeenField | null {
    const known = field.members?.get(name);
    if (known !== undefined) return known;
    if (field.isMap || this.#isData(field, name)) return this.#values(field, nth);
    if (!NAMES.has(name) && nameKind(name) === 'doubtful') {
      const counted = this.#steady(field, name, nth) ?? this.#values(field, nth);
      if (counted === null) this.#doubt = null;
      return counted;
    }
    if ((field.members?.size ?? 0) >= MOST_NAMES) return this.#collapse(field, nth);
    const member = this.add(name, field, nth);
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

  protected override inside(member: SeenField, from: number, nth: number, depth: number): number {
    const doubt = this.#doubt;
    this.#doubt = null;
    const end = super.inside(member, from, nth, depth);
    if (doubt !== null) this.#aside(doubt, from, nth, depth);
    return end;
  }

  /** Counts a member by itself that was counted among all those whose names are data. */
  #aside(doubt: SeenField, from: number, nth: number, depth: number): void {
    let left = MOST_ASIDE - 1 - doubt.size;
    const { mayDoubt } = this.#walked;
    const mayAdd = () => (left -= 1) >= 0 && mayDoubt();
    const silent = { ...this.#walked, isAside: true, mayAdd, tell: () => undefined, drop: () => undefined };
    new MemoryWalk(silent).inside(doubt, from, nth, depth);
  }

  protected override becameKind(field: SeenField, kind: Kind): void {
    if (field.born === this.#walked.nth) return;
    const { kinds } = field;
    const others = field.seen - field.nulls - 1;
    // Nothing but null says nothing of what it is; a whole number and a fraction are both numbers.
    const isNumber = kind === 'integer' || kind === 'decimal';
    if (others <= 0 || (isNumber && kinds.integer + kinds.decimal > 1)) return;
    this.#walked.tell(field, kind);
  }

  /** All members whose names are data, as one. */
  #values(field: SeenField, nth: number): SeenField | null {
    field.values ??= this.add(null, field, nth);
    return field.values;
  }

  #collapse(field: SeenField, nth: number): SeenField | null {
    const count = field.size;
    const had = field.values !== null;
    field.collapse();
    this.#walked.drop(count - field.size);
    const { values } = field;
    if (values !== null && !had) this.#walked.tell(values, null);
    return values ?? this.#values(field, nth);
  }

  /** Whether the name says what somebody has, instead of what a format calls it. */
  #isData(field: SeenField, name: string): boolean {
    if (NAMES.has(name)) return this.#isDocumentedMap(field);
    return namesAnId(name, this.#walked.ids) || nameKind(name) === 'data' || this.#isDocumentedMap(field);
  }

  /** A field whose name may be data, once it is in nearly all of enough objects; with all that was counted before. */
  #steady(field: SeenField, name: string, nth: number): SeenField | null {
    if (this.#walked.isAside === true) return null;
    const doubts = (field.doubts ??= new Map<string, SeenField>());
    let doubt = doubts.get(name);
    if (doubt === undefined) {
      if (doubts.size >= MOST_DOUBTS) forgetUnsteady(doubts, nth);
      if (doubts.size >= MOST_DOUBTS || !this.#walked.mayDoubt()) return null;
      doubt = new SeenField(name, field, this.#walked.nth, nth, this.#walked.at);
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

  #mayAddAll(doubt: SeenField): boolean {
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

  #isDocumentedMap(field: SeenField): boolean {
    const { maps } = this.#walked;
    if (maps.size === 0 || !maps.has(field.path)) return false;
    field.isMap = true;
    return true;
  }

  protected override add(name: string | null, around: SeenField, since: number): SeenField | null {
    const { nth, at, mayAdd, tell } = this.#walked;
    if (!mayAdd()) return null;
    const field = new SeenField(name, around, nth, since, at);
    tell(field, null);
    return field;
  }
}

/** Nearly all objects have it since the first of them; there are enough, counting this one. */
function isSteady({ seen, since, within }: SeenField, nth: number): boolean {
  return isInNearlyAll(seen + (within === nth ? 0 : 1), nth - since + 1);
}

/** Makes room for others. */
function forgetUnsteady(doubts: Map<string, SeenField>, nth: number): void {
  for (const [name, doubt] of doubts)
    if (nth - doubt.since + 1 >= ENOUGH && !isSteady(doubt, nth)) doubts.delete(name);
}
