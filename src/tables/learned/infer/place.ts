import type { ColumnType } from '../../definition.ts';

/**
 * What a value that is not null was. A number is an integer as long as it has neither a fraction nor an exponent. Where columns are
 * learned, a date also fits a timestamp, and an integer a decimal.
 */
export const KINDS = [
  'text',
  'date',
  'timestamp',
  'integer',
  'decimal',
  /** A number that fits no column of numbers. */
  'huge',
  'boolean',
  'object',
  'array',
] as const;

export type Kind = (typeof KINDS)[number];

const NO_KEY = Buffer.alloc(0);

/** What has been seen at one place of the documents: names, kinds, counts and times, never a value. */
export class Place {
  /** The name of the member; null for the document, the items of an array, and members whose names are data. */
  readonly name: string | null;
  readonly around: Place | null;
  /** The name as it stands in a text, quotes included; empty when there is none. */
  readonly key: Buffer;
  /** Number of the document of its type in which it was first seen; 0 for one that was remembered. */
  readonly born: number;
  /** Number of the object around it in which it was first seen, and last. */
  since: number;
  within = 0;
  /** Times it was there, null included. */
  seen = 0;
  nulls = 0;
  /** Texts without a character. */
  empty = 0;
  /** Members that were not looked at, because there are too many places. */
  lost = 0;
  readonly kinds: Record<Kind, number> = {
    text: 0,
    date: 0,
    timestamp: 0,
    integer: 0,
    decimal: 0,
    huge: 0,
    boolean: 0,
    object: 0,
    array: 0,
  };
  /** When it was each kind first; milliseconds since the epoch. */
  readonly kindsSince: Partial<Record<Kind, number>> = {};
  /** Milliseconds since the epoch. */
  first: number;
  last: number;
  members: Map<string, Place> | null = null;
  /** All members whose names are data, as one. */
  values: Place | null = null;
  /** Items of the arrays here, as one. */
  items: Place | null = null;
  /** All names are data. */
  isMap = false;
  /** Members whose names may be data: each by itself, and among `values` as well. In memory only, and never shown. */
  doubts: Map<string, Place> | null = null;
  /** It was folded into another. */
  isGone = false;
  /** Which member the next one is likely to be, as it was the last time: of an object's beginning, and behind this one. */
  head: Place | null = null;
  next: Place | null = null;

  constructor(name: string | null = null, around: Place | null = null, born = 0, since = 0, at = 0) {
    this.name = name;
    this.around = around;
    this.key = name === null ? NO_KEY : Buffer.from(JSON.stringify(name));
    this.born = born;
    this.since = since;
    this.first = at;
    this.last = at;
  }

  /** Those right inside it. */
  *inside(): Generator<Place> {
    yield* this.members?.values() ?? [];
    if (this.values !== null) yield this.values;
    if (this.items !== null) yield this.items;
  }

  /** It and all inside it. */
  *all(): Generator<Place> {
    yield this;
    for (const place of this.inside()) yield* place.all();
  }

  /** Places inside it. */
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
  take(other: Place): void {
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

  /** What the other counted is no longer counted here, nor what is empty then. It was counted here as well. */
  give(other: Place): void {
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

  #lose(name: string, member: Place): void {
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

  #one(mine: Place | null, other: Place): Place {
    const one = mine ?? new Place(null, this, other.born, other.since, other.first);
    one.take(other);
    return one;
  }

  #adopt(member: Place): void {
    const place = new Place(this.isMap ? null : member.name, this, member.born, member.since, member.first);
    place.take(member);
    if (this.isMap) this.values = place;
    else (this.members ??= new Map()).set(member.name ?? '', place);
  }
}

function lost(place: Place): null {
  for (const inside of place.all()) inside.isGone = true;
  return null;
}

/** Kinds that one column takes together, the narrowest column first. */
const TAKES: readonly (readonly [ColumnType, readonly Kind[]])[] = [
  ['boolean', ['boolean']],
  ['integer', ['integer']],
  ['decimal', ['integer', 'decimal']],
  ['date', ['date']],
  ['timestamp', ['date', 'timestamp']],
  ['text', ['text', 'date', 'timestamp']],
];

/** The narrowest column that takes all that was seen; JSON takes everything. */
export function typeOf({ kinds }: Place): ColumnType {
  const seen = KINDS.filter((kind) => kinds[kind] > 0);
  if (seen.length === 0) return 'json';
  return TAKES.find(([, takes]) => seen.every((kind) => takes.includes(kind)))?.[0] ?? 'json';
}

/** What was seen, in words: counts and kinds. */
export function noteOf(place: Place, of: number): string {
  const kinds = KINDS.filter((kind) => place.kinds[kind] > 0);
  const parts = kinds.map((kind) => `${kind} ${place.kinds[kind]}`);
  if (place.nulls > 0) parts.push(`null ${place.nulls}`);
  const mixed = typeOf(place) === 'json' && kinds.length > 1 ? '; mixed, kept as JSON' : '';
  return `in ${place.seen} of ${of}: ${parts.join(', ')}${mixed}`;
}
