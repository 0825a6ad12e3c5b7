import { readFileSync } from 'node:fs';

/** What a field holds; `fields` for objects and lists of objects. */
export interface Kind {
  readonly name: string;
  readonly fields?: readonly Field[];
  readonly values?: readonly string[];
}

export interface Field {
  readonly name: string;
  readonly optional: boolean;
  readonly kind: Kind;
}

/** One line of the description: event types whose data is alike. */
export interface Shape {
  readonly types: readonly string[];
  readonly table: string;
  /** `each`: the data is a list of such objects. A field: its items are the rows. */
  readonly rows: 'data' | 'each' | 'at data';
  readonly fields: readonly Field[];
}

/** How much of the data is given: all, what is required (the rest absent or null), or all and unknown fields. */
export type Variant = 'full' | 'absent' | 'null' | 'strange';
export const VARIANTS: readonly Variant[] = ['full', 'absent', 'null', 'strange'];

/** Reads `event-shapes.txt`, where its notation is said. */
export function readShapes(): { shapes: Shape[]; columns: Map<string, string> } {
  const sets = new Map<string, readonly Field[]>();
  const shapes: Shape[] = [];
  const columns = new Map<string, string>();
  const lines = readFileSync(new URL('event-shapes.txt', import.meta.url), 'utf8').split('\n');
  for (const line of lines.filter((text) => text !== '' && !text.startsWith('#'))) {
    const set = /^(\w+) = (.*)$/.exec(line);
    const column = /^column (\S+) (\S+) (\S+)$/.exec(line);
    const shape = /^(\S+) -> (\w+)( each| at data)? : (.*)$/.exec(line);
    if (set !== null) sets.set(set[1]!, fieldsOf(set[2]!, sets));
    else if (column !== null) columns.set(`${column[1]!} ${column[2]!}`, column[3]!);
    else if (shape !== null)
      shapes.push({
        types: typesOf(shape[1]!),
        table: shape[2]!,
        rows: (shape[3]?.trim() ?? 'data') as Shape['rows'],
        fields: fieldsOf(shape[4]!, sets),
      });
    else throw new Error(`not understood: ${line}`);
  }
  return { shapes, columns };
}

/** `a.{b,c}.d` is `a.b.d` and `a.c.d`. */
function typesOf(pattern: string): string[] {
  const found = /^(.*?)\{([^}]*)\}(.*)$/.exec(pattern);
  if (found === null) return [pattern];
  return found[2]!.split(',').flatMap((word) => typesOf(`${found[1]!}${word}${found[3]!}`));
}

function fieldsOf(text: string, sets: ReadonlyMap<string, readonly Field[]>): Field[] {
  return wordsOf(text).flatMap((word) => {
    if (word.startsWith('...')) {
      const set = sets.get(word.slice(3));
      if (set === undefined) throw new Error(`no set ${word}`);
      return set;
    }
    const at = word.indexOf(':');
    const name = word.slice(0, at).replace('?', '');
    return [{ name, optional: word[at - 1] === '?', kind: kindOf(word.slice(at + 1), sets) }];
  });
}

function kindOf(text: string, sets: ReadonlyMap<string, readonly Field[]>): Kind {
  const found = /^(\w+)\((.*)\)$/.exec(text);
  if (found === null) return { name: text };
  const [, name = '', inner = ''] = found;
  return name === 'one' ? { name, values: inner.split('|') } : { name, fields: fieldsOf(inner, sets) };
}

/** Splits at the blanks that stand in no brackets. */
function wordsOf(text: string): string[] {
  const words = [''];
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === ' ' && depth === 0) words.push('');
    else words.push(`${words.pop() ?? ''}${character}`);
  }
  return words.filter((word) => word !== '');
}

/** Makes data up. No two values of it are alike, as far as their kind allows. */
export class MadeUpData {
  /** Values of unknown fields. */
  readonly unknown: string[] = [];
  readonly #variant: Variant;
  #n: number;

  constructor(variant: Variant, seed: number) {
    this.#variant = variant;
    this.#n = seed * 1000;
  }

  of({ rows, fields }: Shape): unknown {
    return rows === 'each' ? [this.#object(fields), this.#object(fields)] : this.#object(fields);
  }

  #object(fields: readonly Field[]): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const { name, optional, kind } of fields) {
      if (optional && this.#variant === 'null') object[name] = null;
      else if (!optional || this.#variant !== 'absent') object[name] = this.#value(kind);
    }
    if (this.#variant === 'strange') {
      const value = `unknown-${(this.#n += 1)}`;
      this.unknown.push(value);
      object['not_known'] = value;
    }
    return object;
  }

  #value({ name, fields = [], values = [] }: Kind): unknown {
    const n = (this.#n += 1);
    const strange = this.#variant === 'strange';
    const day = new Date(Date.UTC(2026, 0, 1 + (n % 300))).toISOString().slice(0, 10);
    if (name.endsWith('[]')) return [1, 2].map(() => this.#value({ name: name.slice(0, -2) }));
    switch (name) {
      case 'object':
      case 'json':
        return this.#object(fields);
      case 'list':
        return [this.#object(fields), this.#object(fields)];
      case 'one':
        return strange ? 'not_known_value' : values[n % values.length];
      case 'text':
        return `made up "${n}"`;
      case 'uuid':
        return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
      case 'int':
        return n;
      case 'number':
        return n + 0.125;
      case 'bool':
        return n % 2 === 0;
      case 'yes':
        return true;
      case 'time':
        return `${day}T10:${String(n % 60).padStart(2, '0')}:00.250000+00:00`;
      case 'date':
        return day;
      case 'any':
      case 'map':
        return { [`made up ${n}`]: [n, `text ${n}`, null] };
      case 'foods':
        return { [`Made up, ${n}`]: { energy: { unit: 'kcal', value: n }, macros: { carbs: n + 0.5 } } };
      default:
        throw new Error(`no kind ${name}`);
    }
  }
}

/**
 * The columns that an object has to fill, by name: members of objects are joined with their object's name, lists and what
 * is kept in one piece are whole.
 * @param columns by `table path`, where the column has another name; `-` for what has rows of its own
 */
export function columnsIn(
  table: string,
  fields: readonly Field[],
  object: Readonly<Record<string, unknown>>,
  columns: ReadonlyMap<string, string>,
  path: readonly string[] = [],
): Record<string, unknown> {
  return Object.assign(
    {},
    ...fields.map(({ name, kind }) => {
      const value = object[name];
      const at = [...path, name];
      if (value === undefined || value === null) return {};
      if (kind.name === 'object')
        return columnsIn(table, kind.fields ?? [], value as Readonly<Record<string, unknown>>, columns, at);
      const column =
        columns.get(`${table} ${at.join('.')}`) ?? columns.get(`* ${at.join('.')}`) ?? at.join('_');
      return /^[->]/.test(column) ? {} : { [column]: value };
    }),
  ) as Record<string, unknown>;
}

/** The same for the rows that lists inside the data make in other tables, by table. */
export function nestedIn(
  { table, fields }: Shape,
  data: Readonly<Record<string, unknown>>,
  columns: ReadonlyMap<string, string>,
): Record<string, Record<string, unknown>[]> {
  const nested: Record<string, Record<string, unknown>[]> = {};
  for (const [place, column] of columns) {
    const [of, path = ''] = place.split(' ');
    if (of !== table || !column.startsWith('>')) continue;
    let inside: unknown = data;
    let inner: readonly Field[] = fields;
    for (const name of path.split('.')) {
      inside = Object(inside)[name] as unknown;
      inner = inner.find((field) => field.name === name)?.kind.fields ?? [];
    }
    const into = column.slice(1);
    nested[into] = ((inside ?? []) as Record<string, unknown>[]).map((item) =>
      columnsIn(into, inner, item, columns),
    );
  }
  return nested;
}
