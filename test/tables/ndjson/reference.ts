import {
  type Column,
  type ColumnType,
  columnsOf,
  EXTRA,
  LOADED_AT,
  type Nesting,
  type TableDefinition,
} from '../../../src/tables/definition.ts';
import { MEALS } from '../../../src/tables/definitions/meals.ts';
import { type Tree, treesOf } from './trees.ts';

export interface ReferenceRows {
  readonly rows: { meals: string; meal_items: string };
  /** `table code`, in order. */
  readonly rejects: string[];
}

type Member = readonly [name: string, value: Tree];

/** The message is the code. */
class Refused extends Error {}

/**
 * The rows of meals and their foods, made the plain way: stream-json reads, trees are walked, strings are joined. It
 * shares nothing with the quick way but the definitions of the tables.
 * @param lines true when every value is an element, whatever is in it
 */
export async function referenceRows(text: string, lines = false): Promise<ReferenceRows> {
  const result: ReferenceRows = { rows: { meals: '', meal_items: '' }, rejects: [] };
  const trees = await treesOf(text);
  for (const element of lines ? trees : trees.flatMap(elementsIn)) {
    const meal = new Row(MEALS);
    const items = new Items(result.rejects);
    try {
      if (element.kind !== 'object') throw new Refused('wrong_type');
      meal.extra = meal.read(element, '', items);
      meal.complete();
    } catch (error) {
      result.rejects.push(`meals ${codeOf(error)}`);
      continue;
    }
    result.rows.meals += meal.line(null);
    for (const item of items.rows) result.rows.meal_items += item.line(meal);
  }
  return result;
}

function elementsIn(tree: Tree): readonly Tree[] {
  if (tree.kind === 'array') return tree.items;
  if (tree.kind !== 'object') return [tree];
  const containers = tree.members.flatMap(([key, value]) =>
    (key === 'meals' || key === 'data') && value.kind === 'array' ? [value.items] : [],
  );
  return containers.length === 0 ? [tree] : containers.flat();
}

/** The foods of one meal. */
class Items {
  rows: Row[] = [];
  readonly #rejects: string[];
  #position = 0;

  constructor(rejects: string[]) {
    this.#rejects = rejects;
  }

  clear(): void {
    this.rows = [];
    this.#position = 0;
  }

  read({ table }: Nesting, data: Tree & { readonly kind: 'object' }): void {
    for (const [key, value] of data.members) {
      const row = new Row(table, this.#position, key);
      this.#position += 1;
      try {
        if (value.kind === 'object') row.extra = row.read(value, '', null);
        else if (!isNull(value)) throw new Refused('wrong_type');
        row.complete();
        this.rows.push(row);
      } catch (error) {
        this.#rejects.push(`${table.name} ${codeOf(error)}`);
      }
    }
  }
}

class Row {
  readonly #table: TableDefinition;
  readonly #position: number;
  readonly #key: string;
  /** By their path in the document. */
  readonly #values = new Map<string, Tree>();
  /** Objects with columns or rows inside, by their path. */
  readonly #objects = new Map<string, Tree>();
  /** Members of the row's `extra`; the same name may come again. */
  extra: Member[] = [];

  constructor(table: TableDefinition, position = 0, key = '') {
    this.#table = table;
    this.#position = position;
    this.#key = key;
  }

  /** Reads the object at `path`. @returns members of what goes to `extra` */
  read(object: Tree & { readonly kind: 'object' }, path: string, items: Items | null): Member[] {
    const extra: Member[] = [];
    for (const [key, value] of object.members) {
      const at = path === '' ? key : `${path}.${key}`;
      const known = key.includes('.') ? null : this.#known(at);
      if (known === null) {
        extra.push([key, value]);
        continue;
      }
      if ('type' in known) {
        const before = this.#values.get(at);
        if (before !== undefined) extra.push([key, before]);
        this.#values.delete(at);
        if (isNull(value)) continue;
        if (isValid(known.type, value)) this.#values.set(at, value);
        else if (known.required === true) throw new Refused('wrong_type');
        else extra.push([key, value]);
        continue;
      }
      const before = this.#objects.get(at);
      if (before !== undefined) {
        extra.push([key, before]);
        this.#forget(at);
        if ('table' in known) items?.clear();
      }
      if (value.kind === 'object') this.#objects.set(at, value);
      if (isNull(value)) {
        continue;
      } else if (value.kind !== 'object') {
        extra.push([key, value]);
      } else if ('table' in known) {
        items?.read(known, value);
      } else {
        const inner = this.read(value, at, items);
        if (inner.length > 0) extra.push([key, { kind: 'object', members: inner }]);
      }
    }
    return extra;
  }

  #forget(at: string): void {
    this.#objects.delete(at);
    for (const path of [...this.#values.keys(), ...this.#objects.keys()])
      if (path.startsWith(`${at}.`)) {
        this.#values.delete(path);
        this.#objects.delete(path);
      }
  }

  /** What is at a path: a column, nested rows, or an object with columns inside; null when it is not known. */
  #known(at: string): Column | Nesting | { readonly inner: true } | null {
    const { columns, nested = [] } = this.#table;
    const column = columns.find(({ from, older }) => from === at || older === at);
    const within = columns.some(({ from, older = '' }) =>
      [from, older].some((path) => typeof path === 'string' && path.startsWith(`${at}.`)),
    );
    const nesting = nested.find((one) => one.at === at);
    return column ?? nesting ?? (within ? { inner: true } : null);
  }

  complete(): void {
    for (const { from, older } of this.#table.columns) {
      const value = older === undefined ? undefined : this.#values.get(older);
      if (typeof from !== 'string' || older === undefined || value === undefined) continue;
      const hasColumn = this.#table.columns.some((column) => column.from === older);
      if (this.#values.has(from) && hasColumn) continue;
      if (this.#values.has(from)) {
        const [first = '', ...names] = older.split('.');
        const inside = names.reduceRight<Tree>(
          (tree, name) => ({ kind: 'object', members: [[name, tree]] }),
          value,
        );
        this.extra.push([first, inside]);
      } else this.#values.set(from, value);
    }
    for (const { from, required } of this.#table.columns) {
      if (required !== true || typeof from !== 'string') continue;
      const value = this.#values.get(from);
      if (value === undefined || ('text' in value && value.text === '')) throw new Refused('no_identity');
    }
  }

  /** @param around the row that this one's document lies inside */
  line(around: Row | null): string {
    const members = columnsOf(this.#table).flatMap((column) => {
      const value = this.#valueOf(column, around);
      return value === null ? [] : [`${quote(column.name)}:${value}`];
    });
    return `{${members.join(',')}}\n`;
  }

  #valueOf({ name, from, type }: Column, around: Row | null): string | null {
    if (name === LOADED_AT.name) return null;
    if (name === EXTRA.name) return this.extra.length === 0 ? null : renderMembers(this.extra);
    if (typeof from === 'string') {
      const value = this.#values.get(from);
      if (value === undefined) return null;
      if (type === 'integer') return wholeOf(value) ?? null;
      return type === 'timestamp' ? exact(value).replace(/(\.\d{6})\d+/, '$1') : exact(value);
    }
    if ('envelope' in from) return null;
    if ('of' in from) return from.of === 'position' ? String(this.#position) : quote(this.#key);
    if (around === null) return null;
    const above = around.#table.columns.find((column) => column.name === from.parent);
    return above === undefined ? null : around.#valueOf(above, null);
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Refused)) throw error;
  return error.message;
}

function isNull(tree: Tree): boolean {
  return tree.kind === 'literal' && tree.text === 'null';
}

function quote(text: string): string {
  return JSON.stringify(text.replaceAll('\0', '\ufffd').toWellFormed());
}

/** A column's value: numbers as they were written. */
function exact(tree: Tree): string {
  return tree.kind === 'number' ? tree.text : render(tree);
}

/** Compact text; numbers that no double can hold become strings. */
function render(tree: Tree): string {
  switch (tree.kind) {
    case 'object':
      return renderMembers(tree.members);
    case 'array':
      return `[${tree.items.map(render).join(',')}]`;
    case 'string':
      return quote(tree.text);
    case 'number':
      return Number.isFinite(Number(tree.text)) ? tree.text : `"${tree.text}"`;
    case 'literal':
      return tree.text;
    default:
      return tree satisfies never;
  }
}

/** Each name once, where it first stands: objects of one name are put together, of others the last counts. */
function renderMembers(members: readonly Member[]): string {
  const once = new Map<string, Tree>();
  for (const [key, value] of members) {
    const name = quote(key);
    const before = once.get(name);
    const both = before?.kind === 'object' && value.kind === 'object';
    once.set(name, both ? { kind: 'object', members: [...before.members, ...value.members] } : value);
  }
  return `{${[...once].map(([name, value]) => `${name}:${render(value)}`).join(',')}}`;
}

function isValid(type: ColumnType, tree: Tree): boolean {
  switch (type) {
    case 'text':
      return tree.kind === 'string';
    case 'integer':
      return wholeOf(tree) !== undefined;
    case 'decimal':
      return tree.kind === 'number' && isDecimal(tree.text);
    case 'timestamp':
      return tree.kind === 'string' && isTime(tree.text);
    case 'date':
      return tree.kind === 'string' && /^\d{4}-\d\d-\d\d$/.test(tree.text) && isTime(tree.text);
    case 'boolean':
      return tree.kind === 'literal';
    case 'json':
      return true;
    default:
      return type satisfies never;
  }
}

/** The number without point and exponent, when it is a whole one of 64 bits. */
function wholeOf(tree: Tree): string | undefined {
  if (tree.kind !== 'number') return undefined;
  if (/^-?\d+$/.test(tree.text)) return is64Bits(BigInt(tree.text)) ? tree.text : undefined;
  const [mantissa = '', exponent = '0'] = tree.text.split(/e/i);
  const [whole = '', fraction = ''] = mantissa.split('.');
  if (Math.abs(Number(exponent)) > 99) return undefined;
  const [scaled, unit] = [
    BigInt(whole + fraction) * 10n ** BigInt(99 + Number(exponent)),
    10n ** BigInt(99 + fraction.length),
  ];
  return scaled % unit === 0n && is64Bits(scaled / unit) ? String(scaled / unit) : undefined;
}

function is64Bits(value: bigint): boolean {
  return value >= -(2n ** 63n) && value < 2n ** 63n;
}

/** Digits of DECIMAL(38, 18); what is smaller than its last one would become 0. Warehouses read a zero's exponent up to 99. */
function isDecimal(text: string): boolean {
  const [digits = '', exponent = '0'] = text.split(/e/i);
  const size = Math.abs(Number(text));
  return /[1-9]/.test(digits) ? size >= 1e-18 && size < 1e20 : Math.abs(Number(exponent)) <= 99;
}

function isTime(text: string): boolean {
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[+-](\d\d):(\d\d))?)?$/.exec(
    text,
  );
  if (parts === null) return false;
  const [, day = '', ...clock] = parts;
  const [hour = 0, minute = 0, second = 0, hours = 0, minutes = 0] = clock.map((part: string | undefined) =>
    Number(part ?? 0),
  );
  const noon = new Date(`${day}T12:00:00Z`);
  const exists =
    !Number.isNaN(noon.getTime()) && noon.toISOString().startsWith(day) && !day.startsWith('0000');
  if (!(exists && hour < 24 && minute < 60 && second < 60 && hours < 15 && minutes < 60)) return false;
  const zone = /(Z|[+-]..:..)$/.exec(text.slice(19))?.[0] ?? 'Z';
  const instant = new Date(`${day}T${text.slice(11, 19) || '00:00:00'}${zone}`);
  return instant.getUTCFullYear() >= 1 && instant.getUTCFullYear() <= 9999;
}
