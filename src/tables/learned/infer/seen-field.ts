import type { ColumnType } from '../../definition.ts';

/** Kinds of values that are not null. An integer has neither a fraction nor an exponent. */
export const KINDS = [
  'text',
  'date',
  'timestamp',
  'integer',
  'decimal',
  /** A number that no column of numbers takes. */
  'huge',
  'boolean',
  'object',
  'array',
] as const;

export type Kind = (typeof KINDS)[number];

const NO_KEY = Buffer.alloc(0);
const NO_KINDS = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;

/** What was seen of one field of documents: names, kinds, counts and times, never a value. Items of an array are one field. */
export class SeenField {
  /** Null for the document, the items of an array, and the members whose names are data. */
  readonly name: string | null;
  readonly around: SeenField | null;
  /** The name as JSON; empty when there is none. */
  readonly key: Buffer;
  /** Number of the document of its type in which it was first seen; 0 for one that was loaded from memory. */
  readonly born: number;
  /** Numbers of the objects around it in which it was first seen, and last. */
  since: number;
  within = 0;
  /** Number of values, null included. */
  seen = 0;
  nulls = 0;
  /** Texts without a character. */
  empty = 0;
  /** Members that were not counted, because there are too many fields. */
  lost = 0;
  readonly kinds: Record<Kind, number> = { ...NO_KINDS };
  /** When each kind was first seen, in milliseconds since the epoch. */
  readonly kindsSince: Partial<Record<Kind, number>> = {};
  /** When it was first and last seen, in milliseconds since the epoch. */
  first: number;
  last: number;
  members: Map<string, SeenField> | null = null;
  /** All members whose names are data, as one. */
  values: SeenField | null = null;
  /** Items of the arrays here, as one. */
  items: SeenField | null = null;
  /** All names of members are data. */
  isMap = false;
  /** Members whose names may be data: each is counted here and in `values`. In memory only, and never shown. */
  doubts: Map<string, SeenField> | null = null;
  /** It was merged into another field, or removed. */
  isGone = false;
  /** A guess of the next member, from the last object: the first one of this object, and the one after this field. */
  head: SeenField | null = null;
  next: SeenField | null = null;

  constructor(name: string | null = null, around: SeenField | null = null, born = 0, since = 0, at = 0) {
    this.name = name;
    this.around = around;
    this.key = name === null ? NO_KEY : Buffer.from(JSON.stringify(name));
    this.born = born;
    this.since = since;
    this.first = at;
    this.last = at;
  }

  /** The fields directly inside it. */
  *inside(): Generator<SeenField> {
    yield* this.members?.values() ?? [];
    if (this.values !== null) yield this.values;
    if (this.items !== null) yield this.items;
  }

  /** This field and all inside it. */
  *all(): Generator<SeenField> {
    yield this;
    for (const place of this.inside()) yield* place.all();
  }

  /** Number of fields inside it. */
  get size(): number {
    let size = -1;
    for (const _ of this.all()) size += 1;
    return size;
  }

  /** JSON Pointer as `redact` takes it, with `*` for items and for members whose names are data; empty for the document. */
  get path(): string {
    if (this.around === null) return '';
    const name = this.name?.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('*', '~2') ?? '*';
    return `${this.around.path}/${name}`;
  }

  /** Adds the counts of another field that is the same as this one. */
  take(other: SeenField): void {
    this.seen += other.seen;
    this.nulls += other.nulls;
    this.empty += other.empty;
    this.lost += other.lost;
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

  /** Subtracts the counts of another field that was counted here too, and removes what is empty then. */
  give(other: SeenField): void {
    this.seen = Math.max(this.seen - other.seen, 0);
    this.nulls -= other.nulls;
    this.empty -= other.empty;
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

  #lose(name: string, member: SeenField): void {
    this.members?.delete(name);
    lost(member);
    // A guess could be this field.
    this.head = null;
    for (const other of this.members?.values() ?? []) other.next = null;
  }

  noteKind(kind: Kind, at: number | undefined): void {
    if (at !== undefined) this.kindsSince[kind] = Math.min(at, this.kindsSince[kind] ?? at);
  }

  /** Merges all members into `values`: their names are data. */
  collapse(): void {
    const members = [...(this.members?.values() ?? [])];
    this.isMap = true;
    this.members = null;
    this.doubts = null;
    this.head = null;
    for (const member of members) this.values = this.#one(this.values, member);
  }

  #one(mine: SeenField | null, other: SeenField): SeenField {
    const one = mine ?? new SeenField(null, this, other.born, other.since, other.first);
    one.take(other);
    return one;
  }

  #adopt(member: SeenField): void {
    const place = new SeenField(
      this.isMap ? null : member.name,
      this,
      member.born,
      member.since,
      member.first,
    );
    place.take(member);
    if (this.isMap) this.values = place;
    else (this.members ??= new Map()).set(member.name ?? '', place);
  }
}

function lost(place: SeenField): null {
  for (const inside of place.all()) inside.isGone = true;
  return null;
}

/** Kinds that each column type takes, the narrowest type first. */
const TAKES: readonly (readonly [ColumnType, readonly Kind[]])[] = [
  ['boolean', ['boolean']],
  ['integer', ['integer']],
  ['decimal', ['integer', 'decimal']],
  ['date', ['date']],
  ['timestamp', ['date', 'timestamp']],
  ['text', ['text', 'date', 'timestamp']],
];

/** The narrowest column type that takes all that was seen; JSON takes everything. */
export function typeOf({ kinds }: SeenField): ColumnType {
  const seen = KINDS.filter((kind) => kinds[kind] > 0);
  if (seen.length === 0) return 'json';
  return TAKES.find(([, takes]) => seen.every((kind) => takes.includes(kind)))?.[0] ?? 'json';
}

/** Counts and kinds in words. */
export function noteOf(place: SeenField, of: number): string {
  const kinds = KINDS.filter((kind) => place.kinds[kind] > 0);
  const parts = kinds.map((kind) => `${kind} ${place.kinds[kind]}`);
  if (place.nulls > 0) parts.push(`null ${place.nulls}`);
  const mixed = typeOf(place) === 'json' && kinds.length > 1 ? '; mixed, kept as JSON' : '';
  return `in ${place.seen} of ${of}: ${parts.join(', ')}${mixed}`;
}
