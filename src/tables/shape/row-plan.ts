import { canonicalString } from '../../lib/json-compact.ts';
import type { ColumnType, EnvelopeField } from '../definition.ts';

/**
 * A definition made ready for the shaper: paths as trees of fields, columns as slots, everything written as bytes. Slots are the
 * columns that a document may have, then the places where older documents have them, then objects and lists with columns or rows
 * inside. A column's number is its index in `allColumnsOf`. Where there is no such slot or column, -1 stands.
 */
export interface RowPlan {
  readonly table: string;
  /** False for a frame around the rows inside it. */
  readonly ownRows: boolean;
  readonly slots: number;
  readonly columns: readonly ColumnPlan[];
  /** Columns after `extra`: no document has them. */
  readonly tail: readonly ColumnPlan[];
  /** Numbers of `columns`, and then of `tail`. */
  readonly numbers: readonly number[];
  /** Slot of `extra`. */
  readonly extra: number;
  /** Slots of the position, the map key, and the count of rows before this one with the same key. */
  readonly position: number;
  readonly key: number;
  readonly repetition: number;
  /** Slots of the key that the document fills. */
  readonly keySlots: readonly number[];
  /** Number of the column that tells rows with an unknown key apart. */
  readonly rowId: number;
  readonly identity: IdentityPlan;
  /** The part of the key that the row inherits, in slots of the row around it. */
  readonly inheritedIdentity: IdentityPlan;
  readonly required: readonly number[];
  /** Where older documents have a column's value; `path` is null where another column has it anyway. */
  readonly older: readonly { readonly slot: number; readonly from: number; readonly path: string | null }[];
  readonly fields: Fields;
  /** Columns that come from a slot of the row around; they are written in front of the others. */
  readonly inherited: readonly {
    readonly head: Uint8Array;
    readonly slot: number;
    readonly number: number;
  }[];
  /** Indexes in `columns`, and then in `tail`, of those that an event may fill. */
  readonly enveloped: readonly number[];
  readonly nested: readonly NestedPlan[];
}

/** What a row has to have for its key to be known. */
interface IdentityPlan {
  /** Groups of indexes in `columns`, and then in `tail`; one of each group has a value. */
  readonly groups: readonly (readonly number[])[];
  /** Slots that must not have an invalid value. */
  readonly valid: readonly number[];
}

export interface ColumnPlan {
  readonly name: string;
  readonly type: ColumnType;
  /** `,"name":` */
  readonly head: Uint8Array;
  /** Written when the document has nothing, and nothing is given. */
  readonly envelope: EnvelopeField | null;
}

export interface NestedPlan {
  readonly each: 'array' | 'map';
  readonly path: string;
  readonly row: RowPlan;
}

/** What the shaper does with a member of an object. One shape for all, so that hot code sees one. */
export interface Field {
  /** The key with its quotes, as it is usually written. */
  readonly key: Uint8Array;
  readonly name: string;
  /** Slot of the column; -1 for an object or a list. */
  readonly slot: number;
  /** Slot that notes where the object or list stands; -1 for a column. */
  readonly object: number;
  readonly type: ColumnType;
  /** A second column of the member: it takes values that the first does not. */
  readonly other: { readonly slot: number; readonly type: ColumnType } | null;
  readonly fields: Fields | null;
  readonly nested: NestedPlan | null;
}

/** The known members of an object, found by the hash of their key's bytes. */
export class Fields {
  readonly path: string;
  /** `"name":{`, with which `extra` opens this object. */
  readonly open: Uint8Array;
  readonly #members = new Map<string, Field>();
  #byHash: (Field | undefined)[] = [];
  #mask = 0;

  constructor(path: string, name: string) {
    this.path = path;
    this.open = Buffer.from(`${JSON.stringify(name)}:{`);
  }

  add(member: Omit<Field, 'key' | 'other' | 'object'>): void {
    const { name, slot, type } = member;
    const before = this.#members.get(name);
    const field = { ...member, key: Buffer.from(JSON.stringify(name)), other: null, object: -1 };
    if (before === undefined) this.#members.set(name, field);
    else if (before.other === null && before.slot >= 0 && slot >= 0)
      this.#members.set(name, { ...before, other: { slot, type } });
    else throw new Error(`two columns read ${pathOf(this.path, name)}`);
  }

  /** The members of the object that is a member here. */
  inner(name: string): Fields {
    const known = this.#members.get(name)?.fields;
    if (known) return known;
    const fields = new Fields(pathOf(this.path, name), name);
    this.add({ name, slot: -1, type: 'json', fields, nested: null });
    return fields;
  }

  /** @param hash of the bytes between the quotes, as `hashByte` makes it */
  find(bytes: Uint8Array, from: number, to: number, hash: number): Field | undefined {
    const field = this.#byHash[hash & this.#mask];
    if (field === undefined) return undefined;
    const { key } = field;
    if (key.length !== to - from) return undefined;
    for (let i = 1; i < key.length; i += 1) if (bytes[from + i] !== key[i]) return undefined;
    return field;
  }

  members(): Iterable<Field> {
    return this.#members.values();
  }

  /** Type of the column that reads the member; `json` for an object with columns inside, null for no column. */
  typeOf(name: string): ColumnType | null {
    return this.#members.get(name)?.type ?? null;
  }

  /** Finds a key with escapes by its text. */
  findEscaped(bytes: Uint8Array, from: number, to: number): Field | undefined {
    return this.#members.get(JSON.parse(canonicalString(bytes, from, to).toString()) as string);
  }

  /**
   * Gives slots to objects and lists, and makes the smallest hash table without collisions, here and inside. Call it once all
   * members are added.
   * @param free the first slot that is free @returns the first one after those given
   */
  spread(free: number): number {
    let next = free;
    for (const [name, field] of this.#members) {
      if (field.slot >= 0) continue;
      this.#members.set(name, { ...field, object: next });
      next = field.fields?.spread(next + 1) ?? next + 1;
    }
    const members = [...this.#members.values()];
    const hashes = members.map(({ name }) => Buffer.from(name).reduce(hashByte, 0));
    let size = 8;
    while (new Set(hashes.map((hash) => hash & (size - 1))).size < members.length) size *= 2;
    const byHash = Array.from<Field | undefined>({ length: size }).fill(undefined);
    for (const [at, member] of members.entries()) byHash[(hashes[at] ?? 0) & (size - 1)] = member;
    this.#byHash = byHash;
    this.#mask = size - 1;
    return next;
  }
}

export function hashByte(hash: number, byte: number): number {
  return (Math.imul(hash, 31) + byte) | 0;
}

export function pathOf(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
