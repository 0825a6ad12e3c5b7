import { ENOUGH, isInNearlyAll, seemsMap } from '../../tables/learned/infer/maps.ts';
import { type Ids, nameKind, namesAnId } from '../../core/data-names.ts';
import { NAMES } from '../../core/member-names.ts';
import { type Kind, SeenField } from '../../tables/learned/infer/seen-field.ts';
import { ENOUGH_SEEN, Walk } from '../../tables/learned/infer/walk.ts';
import { JsonFault, skipWhite } from '../../lib/json-text.ts';

/** An object with more names is a map: its names are data. */
const MOST_NAMES = 256;
/** Doubtful members of one object, and fields inside one of them. */
const MOST_DOUBTS = 64;
const MOST_ASIDE = 64;

/** A document to walk through, and what the walk may do. */
export interface WalkOptions {
  /** Number of this document among those of its type. */
  readonly nth: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly body: Buffer;
  /** Bytes of the document that are looked at. */
  readonly most: number;
  /** Ids of the event, which are never names of fields. */
  readonly ids: Ids;
  /** Paths of documented maps: their names are data. */
  readonly maps: ReadonlySet<string>;
  /** Counts one more field; false when there are too many. */
  readonly mayAdd: () => boolean;
  /** Counts one more doubtful field; false when there are too many. */
  readonly mayDoubt: () => boolean;
  /** @param kind null for a new field; else the new kind of a known field */
  readonly onFirst: (field: SeenField, kind: Kind | null) => void;
  /** Walks through a doubtful member, which may become a field. */
  readonly isAside?: boolean;
  /** These many fields were folded into others. */
  readonly onFolded: (count: number) => void;
}

/**
 * Counts the fields and kinds of a JSON document. A name that looks like data (an id, a day, an address, a word of a person) becomes
 * no field: `nameKind` and the rules beside it decide. Invalid JSON is counted up to the fault.
 */
export function walk(root: SeenField, options: WalkOptions): void {
  root.seen += 1;
  root.last = options.at;
  try {
    new MemoryWalk(options).value(root, skipWhite(options.body, 0), 1);
  } catch (error) {
    if (error !== ENOUGH_SEEN && !(error instanceof JsonFault)) throw error;
  }
}

/** Finds the field that a member of an object is counted in: its own, or that of all whose names are data. */
class MemoryWalk extends Walk {
  readonly #options: WalkOptions;
  /** The doubtful field of the member whose value comes next: it is counted apart as well. */
  #doubt: SeenField | null = null;

  constructor(options: WalkOptions) {
    super(options.body, options.at, options.most);
    this.#options = options;
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
    // With this member, the names can turn out to be data.
    if (!seemsMap(field)) return member;
    // It is counted again with the others.
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

  /** Counts a doubtful member apart; it was counted among the data already. */
  #aside(doubt: SeenField, from: number, nth: number, depth: number): void {
    let left = MOST_ASIDE - 1 - doubt.size;
    const { mayDoubt } = this.#options;
    const mayAdd = () => (left -= 1) >= 0 && mayDoubt();
    const aside = { isAside: true, mayAdd, onFirst: () => undefined, onFolded: () => undefined };
    new MemoryWalk({ ...this.#options, ...aside }).inside(doubt, from, nth, depth);
  }

  protected override becameKind(field: SeenField, kind: Kind): void {
    if (field.born === this.#options.nth) return;
    const { kinds } = field;
    const others = field.seen - field.nulls - 1;
    // After nothing but null any kind is expected; integers and decimals are both numbers.
    const isNumber = kind === 'integer' || kind === 'decimal';
    if (others <= 0 || (isNumber && kinds.integer + kinds.decimal > 1)) return;
    this.#options.onFirst(field, kind);
  }

  /** The field of all members whose names are data. */
  #values(field: SeenField, nth: number): SeenField | null {
    field.values ??= this.add(null, field, nth);
    return field.values;
  }

  #collapse(field: SeenField, nth: number): SeenField | null {
    const count = field.size;
    const had = field.values !== null;
    field.collapse();
    this.#options.onFolded(count - field.size);
    const { values } = field;
    if (values !== null && !had) this.#options.onFirst(values, null);
    return values ?? this.#values(field, nth);
  }

  /** Whether the name is data, such as a food, and not a name of the format. */
  #isData(field: SeenField, name: string): boolean {
    if (NAMES.has(name)) return this.#isDocumentedMap(field);
    return namesAnId(name, this.#options.ids) || nameKind(name) === 'data' || this.#isDocumentedMap(field);
  }

  /** A doubtful field becomes a field when it is in nearly all of enough objects; it keeps its counts. */
  #steady(field: SeenField, name: string, nth: number): SeenField | null {
    if (this.#options.isAside === true) return null;
    const doubts = (field.doubts ??= new Map<string, SeenField>());
    let doubt = doubts.get(name);
    if (doubt === undefined) {
      if (doubts.size >= MOST_DOUBTS) forgetUnsteady(doubts, nth);
      if (doubts.size >= MOST_DOUBTS || !this.#options.mayDoubt()) return null;
      doubt = new SeenField(name, field, this.#options.nth, nth, this.#options.at);
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
      this.#options.onFolded(count - field.size);
    }
    // A field of the first objects is not new.
    if (doubt.since > ENOUGH) this.#options.onFirst(doubt, null);
    return doubt;
  }

  #mayAddAll(doubt: SeenField): boolean {
    let added = 0;
    for (const _ of doubt.all()) {
      if (!this.#options.mayAdd()) {
        this.#options.onFolded(added);
        return false;
      }
      added += 1;
    }
    return true;
  }

  #isDocumentedMap(field: SeenField): boolean {
    const { maps } = this.#options;
    if (maps.size === 0 || !maps.has(field.path)) return false;
    field.isMap = true;
    return true;
  }

  protected override add(name: string | null, around: SeenField, since: number): SeenField | null {
    const { nth, at, mayAdd, onFirst } = this.#options;
    if (!mayAdd()) return null;
    const field = new SeenField(name, around, nth, since, at);
    onFirst(field, null);
    return field;
  }
}

/** Whether nearly all of enough objects have it, since the first one that had it. */
function isSteady({ seen, since, within }: SeenField, nth: number): boolean {
  return isInNearlyAll(seen + (within === nth ? 0 : 1), nth - since + 1);
}

/** Makes room for others. */
function forgetUnsteady(doubts: Map<string, SeenField>, nth: number): void {
  for (const [name, doubt] of doubts)
    if (nth - doubt.since + 1 >= ENOUGH && !isSteady(doubt, nth)) doubts.delete(name);
}
