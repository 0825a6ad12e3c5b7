import { canonicalString } from '../../lib/json-compact.ts';
import {
  type Column,
  type ColumnType,
  columnsOf,
  type EnvelopeField,
  envelopeOf,
  EXTRA,
  identityOf,
  ROW_ID,
  type TableDefinition,
} from '../definition.ts';
import { usualTime } from './time.ts';

/** A definition made ready for the shaper: paths as trees of fields, columns as slots, everything written as bytes. */
export interface RowPlan {
  readonly table: string;
  /** False for a frame around the rows inside it. */
  readonly ownRows: boolean;
  /** Slots of the columns in order, then of the places where older documents have them. */
  readonly slots: number;
  readonly columns: readonly ColumnPlan[];
  /** Columns after `extra`: no document has them. */
  readonly tail: readonly ColumnPlan[];
  /** Slot of `extra`. */
  readonly extra: number;
  /** Slot that takes the position or the map key; -1 when there is none. */
  readonly position: number;
  readonly key: number;
  /** Slot that takes how many rows before it have the same key; -1 when there is none. */
  readonly repetition: number;
  /** Slots of the key that the document fills. */
  readonly keySlots: readonly number[];
  /** Index in `columnsOf` of the column that tells rows with an unknown key apart; -1 when no row has one. */
  readonly rowId: number;
  readonly identity: IdentityPlan;
  /** Where what the row inherits of its key stands around it. */
  readonly inheritedIdentity: IdentityPlan;
  readonly required: readonly number[];
  /** Where older documents have a column's value; `path` is null where another column has it anyway. */
  readonly older: readonly { readonly slot: number; readonly from: number; readonly path: string | null }[];
  readonly fields: Fields;
  /** Columns that come from the row around this one; they are written in front of the others. */
  readonly inherited: readonly {
    readonly head: Uint8Array;
    readonly slot: number;
    readonly number: number;
  }[];
  /** Indexes in `columnsOf` of `columns`, and then of `tail`. */
  readonly numbers: readonly number[];
  /** Indexes in `columns`, and then in `tail`, of those that an event may say. */
  readonly enveloped: readonly number[];
  readonly nested: readonly NestedPlan[];
  /** Bytes of a row beside its values from the document, and those that are given. */
  readonly room: number;
}

const POSITION_DIGITS = 10;

/** What a row has to have for its key to be known. */
interface IdentityPlan {
  /** Groups of indexes in `columns`, and then in `tail`; one of each group has a value. */
  readonly groups: readonly (readonly number[])[];
  /** Slots that must not have an invalid value. */
  readonly valid: readonly number[];
}

interface ColumnPlan {
  readonly name: string;
  readonly type: ColumnType;
  /** `,"name":` */
  readonly head: Uint8Array;
  /** Written when the document has nothing; empty for null. */
  readonly given: Uint8Array;
  /** What the event says, when nothing is given either. */
  readonly envelope: EnvelopeField | null;
}

export interface NestedPlan {
  readonly each: 'array' | 'map';
  readonly path: string;
  readonly row: RowPlan;
}

/** A column that takes what the one before it on the same member does not. */
interface OtherColumn {
  readonly slot: number;
  readonly type: ColumnType;
}

/** What the shaper does with a member of an object. One shape for all, so that hot code sees one. */
export interface Field {
  /** The key with its quotes, as it is usually written. */
  readonly key: Uint8Array;
  readonly name: string;
  readonly slot: number;
  readonly type: ColumnType;
  readonly other: OtherColumn | null;
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

  add(member: Omit<Field, 'key' | 'other'>): void {
    const { name, slot, type } = member;
    const before = this.#members.get(name);
    const field = { ...member, key: Buffer.from(JSON.stringify(name)), other: null };
    if (before === undefined) this.#members.set(name, field);
    else if (before.other === null && before.slot >= 0 && slot >= 0)
      this.#members.set(name, { ...before, other: { slot, type } });
    else throw new Error(`two columns read ${pathOf(this.path, name)}`);
  }

  inner(name: string): Fields {
    const path = pathOf(this.path, name);
    const known = this.#members.get(name)?.fields;
    if (known !== null && known !== undefined) return known;
    const fields = new Fields(path, name);
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

  /** Type of the column that reads the member, or what is inside it; null when none does. */
  typeOf(name: string): ColumnType | null {
    return this.#members.get(name)?.type ?? null;
  }

  /** For a key with escapes, whose bytes say nothing. */
  findEscaped(bytes: Uint8Array, from: number, to: number): Field | undefined {
    return this.#members.get(JSON.parse(canonicalString(bytes, from, to).toString()) as string);
  }

  /** Once all members are there, here and inside: takes the smallest table of hashes in which no two of them meet. */
  spread(): void {
    const members = [...this.#members.values()];
    for (const { fields } of members) fields?.spread();
    const hashes = members.map(({ name }) => hashOf(name));
    let size = 8;
    while (new Set(hashes.map((hash) => hash & (size - 1))).size < members.length) size *= 2;
    const byHash = Array.from<Field | undefined>({ length: size }).fill(undefined);
    for (const [at, member] of members.entries()) byHash[(hashes[at] ?? 0) & (size - 1)] = member;
    this.#byHash = byHash;
    this.#mask = size - 1;
  }
}

export function hashByte(hash: number, byte: number): number {
  return (Math.imul(hash, 31) + byte) | 0;
}

function hashOf(name: string): number {
  return Buffer.from(name).reduce(hashByte, 0);
}

export function pathOf(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/**
 * @param given values of columns for which the document may have none, as text
 * @throws Error when the definition contradicts itself
 */
export function planRow(
  definition: TableDefinition,
  given: Readonly<Record<string, string>>,
  around?: TableDefinition,
): RowPlan {
  const all = columnsOf(definition);
  const tailFrom = all.findIndex(({ name }) => name === EXTRA.name) + 1;
  const own = all.slice(0, tailFrom).filter((column) => parentOf(column) === null);
  const inherited = all.flatMap((column, number) => {
    const parent = parentOf(column);
    if (parent === null) return [];
    const slot = around === undefined ? -1 : bodyOf(around).findIndex(({ name }) => name === parent);
    if (slot === -1) throw new Error(`${definition.name}.${column.name} has no column to come from`);
    return [{ head: headOf(column.name), slot, number }];
  });
  const fields = new Fields('', '');
  const older: { slot: number; from: number; path: string | null }[] = [];
  for (const [slot, column] of own.entries()) {
    if (typeof column.from !== 'string' || column.from === '') continue;
    addColumn(fields, column.from, column, slot);
    if (column.older === undefined) continue;
    const shared = own.findIndex(({ from }) => from === column.older);
    const from = shared === -1 ? own.length + older.length : shared;
    if (shared === -1) addColumn(fields, column.older, column, from);
    older.push({ slot, from, path: shared === -1 ? column.older : null });
  }
  const nested = (definition.nested ?? []).map(({ at, each, table }) => {
    const plan = { each, path: at, row: planRow(table, given, definition) };
    const [name, parent] = memberAt(fields, at);
    parent.add({ name, slot: -1, type: 'json', fields: null, nested: plan });
    return plan;
  });
  fields.spread();
  const slotOf = (of: string): number =>
    own.findIndex(({ from }) => typeof from === 'object' && 'of' in from && from.of === of);
  const planned = (column: Column): ColumnPlan => {
    const { name, type } = column;
    const envelope = envelopeOf(column, definition);
    return { name, type, head: headOf(name), given: givenOf(given, column), envelope };
  };
  const columns = own.map(planned);
  const tail = all
    .slice(tailFrom)
    .filter((column) => column !== ROW_ID)
    .map(planned);
  return {
    table: definition.name,
    ownRows: definition.ownRows !== false,
    slots: own.length + older.length,
    columns,
    tail,
    numbers: [...own, ...all.slice(tailFrom)].map((column) => all.indexOf(column)),
    rowId: all.indexOf(ROW_ID),
    ...identitiesOf(definition, [...own, ...all.slice(tailFrom)], inherited),
    enveloped: [...columns, ...tail].flatMap(({ envelope, given: fixed }, slot) =>
      envelope !== null && fixed.length === 0 ? [slot] : [],
    ),
    room: [...columns, ...tail].reduce((room, { head }) => room + head.length, POSITION_DIGITS),
    extra: own.findIndex(({ name }) => name === EXTRA.name),
    position: slotOf('position'),
    key: slotOf('key'),
    repetition: slotOf('repetition'),
    keySlots: own.flatMap(({ name, from }, slot) =>
      definition.key.includes(name) && typeof from === 'string' ? [slot] : [],
    ),
    required: own.flatMap(({ required, from }, slot) =>
      required === true && typeof from === 'string' ? [slot] : [],
    ),
    older,
    fields,
    inherited,
    nested,
  };
}

/** @param own columns by their slots */
function identitiesOf(
  definition: TableDefinition,
  own: readonly Column[],
  inherited: RowPlan['inherited'],
): Pick<RowPlan, 'identity' | 'inheritedIdentity'> {
  const all = columnsOf(definition);
  const slotsAround = new Map(inherited.map(({ number, slot }) => [all[number]?.name, slot]));
  const isCounted = (name: string): boolean =>
    own.some(({ name: one, from }) => one === name && typeof from === 'object' && 'of' in from);
  const groups = identityOf(definition).filter((group) => !group.some(isCounted));
  const ownSlots = (names: readonly string[]): number[] =>
    own.flatMap(({ name }, slot) => (names.includes(name) ? [slot] : []));
  const around = (names: readonly string[]): number[] => names.flatMap((name) => slotsAround.get(name) ?? []);
  const isAround = (group: readonly string[]): boolean => around(group).length > 0;
  return {
    identity: {
      groups: groups.filter((group) => !isAround(group)).map(ownSlots),
      valid: ownSlots(definition.key),
    },
    inheritedIdentity: { groups: groups.filter(isAround).map(around), valid: around(definition.key) },
  };
}

/** The columns that a row inside may inherit, in order of their slots. */
function bodyOf(definition: TableDefinition): readonly Column[] {
  return [...definition.columns, EXTRA].filter((column) => parentOf(column) === null);
}

/** Columns in the order in which a row of text has them: what is known last stands first. */
export function columnsInRow(definition: TableDefinition): readonly Column[] {
  return columnsOf(definition).toSorted((a, b) => rankInRow(a) - rankInRow(b));
}

function rankInRow(column: Column): number {
  if (column === ROW_ID) return 0;
  return parentOf(column) === null ? 2 : 1;
}

function parentOf({ from }: Column): string | null {
  return typeof from === 'object' && 'parent' in from ? from.parent : null;
}

function addColumn(fields: Fields, path: string, { type }: Column, slot: number): void {
  const [name, parent] = memberAt(fields, path);
  parent.add({ name, slot, type, fields: null, nested: null });
}

/** The last name of a path and the object it is a member of. */
function memberAt(fields: Fields, path: string): [name: string, parent: Fields] {
  const names = path.split('.');
  const name = names.pop() ?? '';
  return [name, names.reduce((parent, level) => parent.inner(level), fields)];
}

function headOf(name: string): Uint8Array {
  return Buffer.from(`,${JSON.stringify(name)}:`);
}

/** A column may be called `constructor`. */
function givenOf(given: Readonly<Record<string, string>>, { name, type }: Column): Uint8Array {
  const value = Buffer.from(Object.hasOwn(given, name) ? JSON.stringify(given[name]) : '');
  return type === 'timestamp' ? usualTime(value) : value;
}
