import type { ColumnType } from '../../definition.ts';

/** What a value that is not null was, by the columns that take it: a date also fits a timestamp, an integer a decimal. */
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

/** What has been seen at one place of the documents: counts and names, never a value. */
export class Place {
  /** Times it was there, null included. */
  seen = 0;
  nulls = 0;
  /** Texts without a character. */
  empty = 0;
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
  /** Members of the objects here whose names can be names of fields. */
  members: Map<string, Place> | null = null;
  /** All other members, as one. */
  values: Place | null = null;
  /** True when so many names have come that they must be data; all members are in `values` then. */
  isMap = false;
  /** Items of the arrays here, as one. */
  items: Place | null = null;
  /** Members that were not looked at, because there are too many places. */
  lost = 0;
  /** Number of the object around it in which it was there first, and last. */
  readonly since: number;
  last = 0;

  constructor(since: number) {
    this.since = since;
  }

  /** Adds what was seen at another place, so that both are one. */
  merge(other: Place): void {
    this.seen += other.seen;
    this.nulls += other.nulls;
    this.empty += other.empty;
    this.lost += other.lost;
    for (const kind of KINDS) this.kinds[kind] += other.kinds[kind];
    this.values = merged(this.values, other.values);
    this.items = merged(this.items, other.items);
    if (this.isMap || other.isMap) {
      this.collapse();
      for (const member of other.members?.values() ?? []) this.values = merged(this.values, member);
      return;
    }
    for (const [name, member] of other.members ?? []) {
      this.members ??= new Map();
      this.members.set(name, merged(this.members.get(name) ?? null, member) ?? member);
    }
  }

  /** From now on names are data here. */
  collapse(): void {
    this.isMap = true;
    for (const member of this.members?.values() ?? []) this.values = merged(this.values, member);
    this.members = null;
  }
}

/** Both as one; neither is changed. */
function merged(one: Place | null, other: Place | null): Place | null {
  if (one === null || other === null) return one ?? other;
  const both = new Place(Math.min(one.since, other.since));
  both.merge(one);
  both.merge(other);
  return both;
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
