import { documentedMaps } from './documented.ts';
import { SeenField } from '../../tables/learned/infer/seen-field.ts';
import { SchemaMemory, type TypeMemory } from './memory.ts';

/** Kinds in their saved order. */
const KINDS = ['text', 'integer', 'decimal', 'boolean', 'object', 'array'] as const;

/** A saved field. Names are short, because there are thousands. */
interface SavedField {
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
  readonly m?: Readonly<Record<string, SavedField>> | undefined;
  readonly v?: SavedField | undefined;
  readonly i?: SavedField | undefined;
  /** All names are data. */
  readonly x?: true | undefined;
}

interface SavedMemory {
  readonly version: 1;
  readonly isFull: boolean;
  readonly types: readonly (Omit<TypeMemory, 'root' | 'maps' | 'fields'> & { readonly root: SavedField })[];
}

/** Saves the memory as one text: names, kinds, counts and times. */
export function textOf({ types, isFull }: SchemaMemory): string {
  return JSON.stringify({
    version: 1,
    isFull,
    types: [...types.values()].map(({ type, first, last, seen, looked, isFull: more, root }) => {
      return { type, first, last, seen, looked, isFull: more, root: savedOf(root) };
    }),
  } satisfies SavedMemory);
}

/** Adds a saved memory to an empty one. @param text null when nothing was saved @throws Error for an invalid text */
export function restoreMemory(text: string | null, memory: SchemaMemory = new SchemaMemory()): SchemaMemory {
  if (text === null) return memory;
  const { version, types, isFull } = JSON.parse(text) as SavedMemory;
  if (version !== 1) throw new Error(`the memory is of version ${String(version)}`);
  // All types are read before one is added.
  const restored = types.map(({ root: saved, ...type }) => {
    const root = fieldOf(saved, null, null);
    return { ...type, root, fields: root.size, maps: documentedMaps(type.type) };
  });
  memory.isFull = isFull;
  for (const type of restored) memory.restore(type);
  return memory;
}

function savedOf(field: SeenField): SavedField {
  const { members, values, items } = field;
  return {
    s: field.seen,
    n: field.nulls,
    k: KINDS.map((kind) => field.kinds[kind]),
    t: KINDS.map((kind) => field.kindsSince[kind] ?? 0),
    f: field.first,
    l: field.last,
    o: field.since,
    // fromEntries also takes a member called __proto__.
    m: members?.size
      ? Object.fromEntries([...members].map(([name, one]) => [name, savedOf(one)]))
      : undefined,
    v: values === null ? undefined : savedOf(values),
    i: items === null ? undefined : savedOf(items),
    x: field.isMap ? true : undefined,
  };
}

function fieldOf(saved: SavedField, name: string | null, around: SeenField | null): SeenField {
  const field = new SeenField(name, around, 0, saved.o, saved.f);
  field.last = saved.l;
  field.seen = saved.s;
  field.nulls = saved.n;
  field.isMap = saved.x === true;
  for (const [index, kind] of KINDS.entries()) {
    field.kinds[kind] = saved.k[index] ?? 0;
    field.noteKind(kind, saved.t[index] === 0 ? undefined : saved.t[index]);
  }
  if (saved.m !== undefined)
    field.members = new Map(
      Object.entries(saved.m).map(([member, one]) => [member, fieldOf(one, member, field)]),
    );
  if (saved.v !== undefined) field.values = fieldOf(saved.v, null, field);
  if (saved.i !== undefined) field.items = fieldOf(saved.i, null, field);
  return field;
}
