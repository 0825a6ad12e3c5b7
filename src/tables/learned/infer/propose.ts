import { EVENT_IDS } from '../../definition.ts';
import type { LearnedColumn, LearnedNesting, LearnedTable } from './write.ts';
import { isFieldName, isMap } from './maps.ts';
import { SYSTEM_COLUMNS } from '../learned-schema.ts';
import { snakeCase, takeName } from './names.ts';
import { SeenField, noteOf, typeOf } from './seen-field.ts';

/** Levels of objects whose members become columns; deeper ones are JSON. */
const DEEPEST = 5;
/** Warehouses get slow with more columns; the others stay in `extra`. */
const MOST_COLUMNS = 400;
const MOST_NESTED = 20;

/** Names that have another meaning in every row, in folders of an export, in views, or in databases. */
const RESERVED = ['extra', 'dt', 'rank', ...SYSTEM_COLUMNS];
const NEWEST = ['updated_at', 'modified_at', 'last_modified_at', 'last_modified', 'last_updated'];

/** A table of documents, without their event types. */
export type Proposal = Omit<LearnedTable, 'events'>;

/**
 * Proposes the table for documents.
 * @param documents what was seen of the documents
 * @param taken names of existing tables; the new ones are added
 */
export function propose(name: string, documents: SeenField, taken: Set<string>): Proposal {
  const isEach = documents.kinds.array > documents.kinds.object;
  const root = (isEach ? documents.items : documents) ?? new SeenField();
  const rows = new Rows(root, true);
  const columns = rows.columns();
  const id = columns.find(({ from }) => from === 'id');
  const identity = id !== undefined && isIdentity(root) ? id : undefined;
  const times = columns.filter(({ type }) => type === 'timestamp' || type === 'date');
  const newest = NEWEST.flatMap((time) => times.find((column) => column.name === time) ?? [])[0];
  const nested = rows.nested.map((found) => nestingOf(name, found, identity, newest, taken));
  return {
    name,
    note: rows.note(),
    ...(isEach ? { each: 'array' as const } : {}),
    key: identity === undefined ? [] : [identity.name],
    ...(newest === undefined ? {} : { newest: newest.name }),
    columns: columns.map((column) => (column === identity ? { ...column, required: true as const } : column)),
    ...(nested.length === 0 ? {} : { nested }),
  };
}

/** True when every object has an `id` that is not empty. */
function isIdentity(root: SeenField): boolean {
  const id = root.members?.get('id');
  if (id === undefined) return false;
  return (
    id.seen === root.kinds.object &&
    id.kinds.text + id.kinds.integer === id.seen &&
    id.empty === 0 &&
    ['text', 'integer'].includes(typeOf(id))
  );
}

/** An array or a map whose items become rows of a nested table. */
interface RowsInside {
  readonly path: readonly string[];
  readonly each: 'array' | 'map';
  readonly items: SeenField;
}

/** The columns of one table, made of the fields of its objects. */
class Rows {
  readonly nested: RowsInside[] = [];
  readonly #root: SeenField;
  readonly #found: {
    readonly path: readonly string[];
    readonly place: SeenField;
    readonly around: number;
  }[] = [];
  /** Names that are left to `extra`. */
  #left = 0;
  #lost = 0;

  /** @param canNest items of arrays and maps can be rows of nested tables */
  constructor(root: SeenField, canNest: boolean) {
    this.#root = root;
    this.#object(root, [], canNest, isMap(root));
  }

  /** @param taken names of other columns */
  columns(taken: Set<string> = new Set(RESERVED)): LearnedColumn[] {
    return this.#found.slice(0, MOST_COLUMNS).map(({ path, place, around }): LearnedColumn => {
      const type = typeOf(place);
      const plain = snakeCase(path.join('_'));
      const name = takeName(EVENT_IDS.has(plain) && type !== 'text' ? `data_${plain}` : plain, taken);
      const share = (place.seen - place.nulls) / Math.max(this.#root.kinds.object, 1);
      return { name, type, from: path.join('.'), share: shareOf(share), note: noteOf(place, around) };
    });
  }

  note(): string {
    const over = Math.max(this.#found.length - MOST_COLUMNS, 0);
    const notes = [`${this.#root.kinds.object} looked at`];
    if (this.#left > 0) notes.push('names that look like data stay in extra');
    if (over > 0) notes.push(`${over} more columns would be too many; they stay in extra`);
    if (this.#lost > 0) notes.push('there are too many places; some were not looked at');
    return notes.join('; ');
  }

  #object(place: SeenField, path: readonly string[], canNest: boolean, isDoubtful: boolean): void {
    if (place.values !== null) this.#left += place.values.seen;
    this.#lost += place.lost;
    for (const [name, member] of place.members ?? []) {
      const isRare = isDoubtful && member.seen * 2 < place.kinds.object;
      if (name.includes('.') || isRare || !isFieldName(name, member, place)) this.#left += member.seen;
      else this.#member(place, [...path, name], member, canNest);
    }
  }

  #member(around: SeenField, path: readonly string[], place: SeenField, canNest: boolean): void {
    const values = place.seen - place.nulls;
    const { object, array } = place.kinds;
    const isObject = object > 0 && object === values;
    if (isObject && !isMap(place) && path.length < DEEPEST && hasFields(place)) {
      this.#object(place, path, canNest, false);
      return;
    }
    const each = isObject ? 'map' : 'array';
    const items = isObject ? allMembers(place) : place.items;
    const canBeRows =
      canNest &&
      (isObject || (array > 0 && array === values)) &&
      items !== null &&
      items.kinds.object > 0 &&
      // In a map null is a row with only a name; in an array it would be no row.
      items.kinds.object + (isObject ? items.nulls : 0) === items.seen &&
      this.nested.length < MOST_NESTED;
    if (canBeRows) this.nested.push({ path, each, items });
    else this.#found.push({ path, place, around: around.kinds.object });
  }
}

/** False for an object whose members would all stay in `extra`: it becomes JSON. */
function hasFields(place: SeenField): boolean {
  return [...(place.members ?? [])].some(
    ([name, member]) => !name.includes('.') && isFieldName(name, member, place),
  );
}

/** All members of a map, merged. */
function allMembers(place: SeenField): SeenField | null {
  const { values, members: named } = place;
  const members = [...(values === null ? [] : [values]), ...(named?.values() ?? [])];
  if (members.length === 0) return null;
  const all = new SeenField();
  // If names are data inside one member, they are data inside all.
  all.isMap = members.some(({ isMap: isOneMap }) => isOneMap);
  for (const member of members) all.take(member);
  return all;
}

function nestingOf(
  around: string,
  { path, each, items }: RowsInside,
  id: LearnedColumn | undefined,
  newest: LearnedColumn | undefined,
  taken: Set<string>,
): LearnedNesting {
  const name = takeName(snakeCase(`${around}_${path.join('_')}`), taken);
  const names = new Set(RESERVED);
  const fixed = (wanted: string, type: LearnedColumn['type'], from: LearnedColumn['from']): LearnedColumn => {
    return { name: takeName(snakeCase(wanted), names), type, from };
  };
  const parents = [id, newest].flatMap((parent) =>
    parent === undefined ? [] : [fixed(`${around}_${parent.name}`, parent.type, { parent: parent.name })],
  );
  const index = fixed('item_index', 'integer', { of: 'position' });
  const key = each === 'map' ? [fixed('item_name', 'text', { of: 'key' })] : [];
  const rows = new Rows(items, false);
  return {
    at: path.join('.'),
    each,
    name,
    note: `${each === 'map' ? 'the names in the map are data; ' : ''}${rows.note()}`,
    key: id === undefined ? [] : [...parents.slice(0, 1), index].map((column) => column.name),
    columns: [...parents, index, ...key, ...rows.columns(names)],
  };
}

/** Rounded, but only 0 becomes 0 and only 1 becomes 1. */
function shareOf(share: number): number {
  if (share <= 0 || share >= 1) return Math.min(Math.max(share, 0), 1);
  return Math.min(Math.max(Math.round(share * 1000) / 1000, 0.001), 0.999);
}
