/** What a value is. A number is an integer as long as it has neither a fraction nor an exponent. */
export const KINDS = ['text', 'integer', 'decimal', 'boolean', 'object', 'array'] as const;

export type Kind = (typeof KINDS)[number];

const NO_KEY = Buffer.alloc(0);

/** What has been seen at one place of the documents of a type: names, kinds, counts and times, never a value. */
export class Field {
  /** The name of the member; null for the document, the items of an array, and members whose names are data. */
  readonly name: string | null;
  readonly around: Field | null;
  /** The name as it stands in a text, quotes included; empty when there is none. */
  readonly key: Buffer;
  /** Number of the document of its type in which it was first seen; 0 for one that was remembered. */
  readonly born: number;
  /** Number of the object around it in which it was first seen, and last. */
  since: number;
  within = 0;
  seen = 0;
  nulls = 0;
  readonly kinds: Record<Kind, number> = {
    text: 0,
    integer: 0,
    decimal: 0,
    boolean: 0,
    object: 0,
    array: 0,
  };
  /** When it was each kind first; milliseconds since the epoch. */
  readonly kindsSince: Partial<Record<Kind, number>> = {};
  /** Milliseconds since the epoch. */
  first: number;
  last: number;
  members: Map<string, Field> | null = null;
  /** All members whose names are data, as one. */
  values: Field | null = null;
  /** Items of the arrays here, as one. */
  items: Field | null = null;
  /** All names are data. */
  isMap = false;
  /** Members whose names may be data: each by itself, and among `values` as well. In memory only, and never shown. */
  doubts: Map<string, Field> | null = null;
  /** It was folded into another. */
  isGone = false;
  /** Which member the next one is likely to be, as it was the last time: of an object's beginning, and behind this one. */
  head: Field | null = null;
  next: Field | null = null;

  constructor(name: string | null, around: Field | null, born: number, since: number, at: number) {
    this.name = name;
    this.around = around;
    this.key = name === null ? NO_KEY : Buffer.from(JSON.stringify(name));
    this.born = born;
    this.since = since;
    this.first = at;
    this.last = at;
  }

  /** Those right inside it. */
  *inside(): Generator<Field> {
    yield* this.members?.values() ?? [];
    if (this.values !== null) yield this.values;
    if (this.items !== null) yield this.items;
  }

  /** It and all inside it. */
  *all(): Generator<Field> {
    yield this;
    for (const field of this.inside()) yield* field.all();
  }

  /** Fields inside it. */
  get size(): number {
    let size = -1;
    for (const _ of this.all()) size += 1;
    return size;
  }

  /** JSON Pointer with `*` for each item and each member whose name is data, as `redact` takes it; empty for the document. */
  get path(): string {
    if (this.around === null) return '';
    const name = this.name?.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('*', '~2') ?? '*';
    return `${this.around.path}/${name}`;
  }

  /** All that was seen at the other, at a place that is the same, is seen here from now on. */
  take(other: Field): void {
    this.seen += other.seen;
    this.nulls += other.nulls;
    this.first = Math.min(this.first, other.first);
    this.last = Math.max(this.last, other.last);
    for (const kind of KINDS) {
      this.kinds[kind] += other.kinds[kind];
      this.noteKind(kind, other.kindsSince[kind]);
    }
    other.isGone = true;
    for (const member of other.members?.values() ?? []) {
      const same = this.isMap ? this.values : this.members?.get(member.name ?? '');
      if (same === undefined || same === null) this.#adopt(member);
      else same.take(member);
    }
    if (other.values !== null) this.values = this.#one(this.values, other.values);
    if (other.items !== null) this.items = this.#one(this.items, other.items);
  }

  /** What the other counted is no longer counted here, nor what is empty then. It was counted here as well. */
  give(other: Field): void {
    this.seen = Math.max(this.seen - other.seen, 0);
    this.nulls -= other.nulls;
    for (const kind of KINDS) this.kinds[kind] -= other.kinds[kind];
    for (const member of other.members?.values() ?? []) {
      const mine = this.members?.get(member.name ?? '') ?? this.values;
      mine?.give(member);
    }
    if (other.values !== null) this.values?.give(other.values);
    if (other.items !== null) this.items?.give(other.items);
    for (const [name, member] of this.members ?? []) if (member.#isEmpty) this.#lose(name, member);
    this.dropEmptyValues();
    if (this.items !== null && this.items.#isEmpty) this.items = lost(this.items);
  }

  dropEmptyValues(): void {
    if (this.values !== null && this.values.#isEmpty) this.values = lost(this.values);
  }

  get #isEmpty(): boolean {
    return this.nulls <= 0 && KINDS.every((kind) => this.kinds[kind] <= 0);
  }

  #lose(name: string, member: Field): void {
    this.members?.delete(name);
    lost(member);
    // A guess could lead to it.
    this.head = null;
    for (const other of this.members?.values() ?? []) other.next = null;
  }

  noteKind(kind: Kind, at: number | undefined): void {
    if (at !== undefined) this.kindsSince[kind] = Math.min(at, this.kindsSince[kind] ?? at);
  }

  /** From now on names are data here. */
  collapse(): void {
    const members = [...(this.members?.values() ?? [])];
    this.isMap = true;
    this.members = null;
    this.doubts = null;
    this.head = null;
    for (const member of members) this.values = this.#one(this.values, member);
  }

  #one(mine: Field | null, other: Field): Field {
    const one = mine ?? new Field(null, this, other.born, other.since, other.first);
    one.take(other);
    return one;
  }

  #adopt(member: Field): void {
    const field = new Field(this.isMap ? null : member.name, this, member.born, member.since, member.first);
    field.take(member);
    if (this.isMap) this.values = field;
    else (this.members ??= new Map()).set(member.name ?? '', field);
  }
}

function lost(field: Field): null {
  for (const inside of field.all()) inside.isGone = true;
  return null;
}
