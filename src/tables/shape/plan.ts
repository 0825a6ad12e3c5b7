import { getOrMake } from '../../lib/get-or-make.ts';
import {
  type Column,
  type ColumnType,
  allColumnsOf,
  columnsOf,
  envelopeOf,
  EXTRA,
  identityOf,
  ROW_ID,
  type TableDefinition,
} from '../definition.ts';
import { type ColumnPlan, Fields, type NestedPlan, type RowPlan } from './row-plan.ts';
import { plainValue } from './column-types.ts';

const plans = new WeakMap<TableDefinition, RowPlan>();

/** The plan of a document's own row; made once, because each answer of a service has a shaper. @throws Error when the definition contradicts itself */
export function planRow(definition: TableDefinition): RowPlan {
  return getOrMake(plans, definition, () => newPlan(definition, []));
}

/** @param around columns of the row around, by slot */
function newPlan(definition: TableDefinition, around: readonly Column[]): RowPlan {
  const all = allColumnsOf(definition);
  const tailFrom = all.indexOf(EXTRA) + 1;
  const own = all.slice(0, tailFrom).filter((column) => parentOf(column) === null);
  const behind = all.slice(tailFrom).filter((column) => column !== ROW_ID);
  const inherited = all.flatMap((column, number) => {
    const parent = parentOf(column);
    if (parent === null) return [];
    const slot = around.findIndex(({ name }) => name === parent);
    if (slot === -1) throw new Error(`${definition.name}.${column.name} has no column to come from`);
    return [{ name: column.name, head: headOf(column), slot, number }];
  });
  const fields = new Fields('', '');
  const older: { slot: number; from: number; path: string | null }[] = [];
  for (const [slot, { from, type, older: path }] of own.entries()) {
    if (typeof from !== 'string' || from === '') continue;
    addMember(fields, from, { slot, type });
    if (path === undefined) continue;
    const shared = own.findIndex((column) => column.from === path);
    if (shared === -1) {
      older.push({ slot, from: own.length + older.length, path });
      addMember(fields, path, { slot: own.length + older.length - 1, type });
    } else older.push({ slot, from: shared, path: null });
  }
  const nested = (definition.nested ?? []).map(({ at, each, table }) => {
    const plan = { each, path: at, row: newPlan(table, own) };
    addMember(fields, at, { slot: -1, type: 'json', nested: plan });
    return plan;
  });
  const slots = fields.spread(own.length + older.length);
  const [columns, tail] = [own, behind].map((some) =>
    some.map((column) => ({
      name: column.name,
      type: column.type,
      head: headOf(column),
      envelope: envelopeOf(column, definition),
    })),
  ) as [ColumnPlan[], ColumnPlan[]];
  const slotOf = (of: string): number => own.findIndex((column) => countOf(column) === of);
  const slotsWhere = (is: (column: Column) => boolean): number[] =>
    own.flatMap((column, slot) => (typeof column.from === 'string' && is(column) ? [slot] : []));
  return {
    table: definition.name,
    ownRows: definition.ownRows !== false,
    slots,
    columns,
    tail,
    numbers: [...own, ...behind].map((column) => all.indexOf(column)),
    rowId: all.indexOf(ROW_ID),
    ...identitiesOf(
      definition,
      [...own, ...behind],
      new Map(inherited.map(({ name, slot }) => [name, slot])),
    ),
    enveloped: [...columns, ...tail].flatMap(({ envelope }, at) => (envelope === null ? [] : [at])),
    extra: own.indexOf(EXTRA),
    position: slotOf('position'),
    key: slotOf('key'),
    repetition: slotOf('repetition'),
    keySlots: slotsWhere(({ name }) => definition.key.includes(name)),
    required: slotsWhere(({ required }) => required === true),
    older,
    fields,
    inherited,
    nested,
  };
}

/** @param own columns by their slots @param inherited slots in the row around, by column */
function identitiesOf(
  definition: TableDefinition,
  own: readonly Column[],
  inherited: ReadonlyMap<string, number>,
): Pick<RowPlan, 'identity' | 'inheritedIdentity'> {
  const slots = new Map(own.map(({ name }, slot) => [name, slot]));
  const counted = new Set(own.filter((column) => countOf(column) !== null).map(({ name }) => name));
  const groups = identityOf(definition).filter((group) => !group.some((name) => counted.has(name)));
  const isInherited = (group: readonly string[]): boolean => group.some((name) => inherited.has(name));
  const inOwn = (names: readonly string[]): number[] => names.flatMap((name) => slots.get(name) ?? []);
  const around = (names: readonly string[]): number[] => names.flatMap((name) => inherited.get(name) ?? []);
  return {
    identity: {
      groups: groups.filter((group) => !isInherited(group)).map(inOwn),
      valid: inOwn(definition.key),
    },
    inheritedIdentity: { groups: groups.filter(isInherited).map(around), valid: around(definition.key) },
  };
}

/** Columns in the order in which a row of text has them: what is known last stands first. */
export function columnsInRow(
  definition: TableDefinition,
  columns = columnsOf(definition),
): readonly Column[] {
  return columns.toSorted((a, b) => rankInRow(a) - rankInRow(b));
}

function rankInRow(column: Column): number {
  if (column === ROW_ID) return 0;
  return parentOf(column) === null ? 2 : 1;
}

function parentOf({ from }: Column): string | null {
  return typeof from === 'object' && 'parent' in from ? from.parent : null;
}

/** What a column counts, or names, of a row among others; null when it reads the document or an event. */
function countOf({ from }: Column): string | null {
  return typeof from === 'object' && 'of' in from ? from.of : null;
}

function addMember(
  fields: Fields,
  path: string,
  member: { readonly slot: number; readonly type: ColumnType; readonly nested?: NestedPlan },
): void {
  const names = path.split('.');
  const name = names.pop() ?? '';
  const object = names.reduce((around, level) => around.inner(level), fields);
  object.add({ fields: null, nested: null, ...member, name });
}

function headOf({ name }: Column): Uint8Array {
  return Buffer.from(`,${JSON.stringify(name)}:`);
}

/** Values of columns for which a document may have none, as text. */
export type Given = Readonly<Record<string, string>>;

const NOTHING = Buffer.alloc(0);

/** Written when the document has nothing; empty for null. */
export function givenOf(given: Given, { name, type }: Pick<Column, 'name' | 'type'>): Uint8Array {
  // A column may be called `constructor`.
  if (!Object.hasOwn(given, name)) return NOTHING;
  const value = Buffer.from(JSON.stringify(given[name]));
  return type === 'timestamp' ? plainValue(type, value, 0, value.length) : value;
}
