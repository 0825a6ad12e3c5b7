import { documentedMaps } from './documented.ts';
import { SeenField } from '../../tables/learned/infer/seen-field.ts';
import { SchemaMemory, type TypeMemory } from './memory.ts';

/** Kinds in the order in which they are kept. */
const KINDS = ['text', 'integer', 'decimal', 'boolean', 'object', 'array'] as const;

/** A field as it is kept. Names are short: there are thousands. */
interface Kept {
  /** Times it was there, and was null. */
  readonly s: number;
  readonly n: number;
  /** Counts of kinds, in their order. */
  readonly k: readonly number[];
  /** When it was each kind first; 0 for never. */
  readonly t: readonly number[];
  /** First and last seen. */
  readonly f: number;
  readonly l: number;
  /** Number of the object around it in which it was first seen. */
  readonly o: number;
  readonly m?: Readonly<Record<string, Kept>> | undefined;
  readonly v?: Kept | undefined;
  readonly i?: Kept | undefined;
  /** All names are data. */
  readonly x?: true | undefined;
}

interface KeptMemory {
  readonly version: 1;
  readonly isFull: boolean;
  readonly types: readonly (Omit<TypeMemory, 'root' | 'maps' | 'fields'> & { readonly root: Kept })[];
}

/** The memory as one text: names, kinds, counts and times. */
export function textOf({ types, isFull }: SchemaMemory): string {
  return JSON.stringify({
    version: 1,
    isFull,
    types: [...types.values()].map(({ type, first, last, seen, looked, isFull: more, root }) => {
      return { type, first, last, seen, looked, isFull: more, root: keptOf(root) };
    }),
  } satisfies KeptMemory);
}

/** A memory as it was kept; an empty one when there is none. @throws Error when it is no such text */
export function memoryOf(text: string | null): SchemaMemory {
  const memory = new SchemaMemory();
  if (text !== null) restoreFrom(text, memory);
  return memory;
}

/** @throws Error when it is no such text */
export function restoreFrom(text: string, memory: SchemaMemory): void {
  const { version, types, isFull } = JSON.parse(text) as KeptMemory;
  if (version !== 1) throw new Error(`the memory is of version ${String(version)}`);
  const restored = types.map(({ root: kept, ...type }) => {
    const root = fieldOf(kept, null, null);
    return { ...type, root, fields: root.size, maps: documentedMaps(type.type) };
  });
  // All of it or nothing.
  memory.isFull = isFull;
  for (const type of restored) memory.restore(type);
}

function keptOf(field: SeenField): Kept {
  const { members, values, items } = field;
  return {
    s: field.seen,
    n: field.nulls,
    k: KINDS.map((kind) => field.kinds[kind]),
    t: KINDS.map((kind) => field.kindsSince[kind] ?? 0),
    f: field.first,
    l: field.last,
    o: field.since,
    // Not by assignment: one may be called __proto__.
    m:
      members === null || members.size === 0
        ? undefined
        : Object.fromEntries([...members].map(([name, member]) => [name, keptOf(member)])),
    v: values === null ? undefined : keptOf(values),
    i: items === null ? undefined : keptOf(items),
    x: field.isMap ? true : undefined,
  };
}

function fieldOf(kept: Kept, name: string | null, around: SeenField | null): SeenField {
  const field = new SeenField(name, around, 0, kept.o, kept.f);
  field.last = kept.l;
  field.seen = kept.s;
  field.nulls = kept.n;
  field.isMap = kept.x === true;
  for (const [index, kind] of KINDS.entries()) {
    field.kinds[kind] = kept.k[index] ?? 0;
    field.noteKind(kind, kept.t[index] === 0 ? undefined : kept.t[index]);
  }
  if (kept.m !== undefined)
    field.members = new Map(
      Object.entries(kept.m).map(([member, inside]) => [member, fieldOf(inside, member, field)]),
    );
  if (kept.v !== undefined) field.values = fieldOf(kept.v, null, field);
  if (kept.i !== undefined) field.items = fieldOf(kept.i, null, field);
  return field;
}
