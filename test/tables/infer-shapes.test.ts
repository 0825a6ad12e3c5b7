import { describe, expect, test } from 'vitest';
import { type LearnedTable, writeTables } from '../../src/tables/learned/infer/write.ts';
import { parseTables } from '../../src/tables/learned/read-tables.ts';
import { type Field, MadeUpData, readShapes } from './event-shapes.ts';
import { inferred, type Json, shaped } from './infer-support.ts';

const TYPES: Readonly<Record<string, string>> = {
  text: 'text',
  uuid: 'text',
  one: 'text',
  int: 'integer',
  number: 'decimal',
  bool: 'boolean',
  yes: 'boolean',
  time: 'timestamp',
  date: 'date',
  any: 'json',
  map: 'json',
};

/** What is to be learned of fields: columns by their path, and the tables of lists. */
function expected(
  fields: readonly Field[],
  path: readonly string[] = [],
): { columns: string[]; lists: Map<string, string[]> } {
  const columns: string[] = [];
  const lists = new Map<string, string[]>();
  for (const { name, kind } of fields) {
    const at = [...path, name];
    if (kind.name === 'object' || kind.name === 'json') {
      const inner = expected(kind.fields ?? [], at);
      columns.push(...inner.columns);
      for (const [list, own] of inner.lists) lists.set(list, own);
    } else if (kind.name === 'list') {
      const inner = expected(kind.fields ?? []);
      lists.set(
        at.join('.'),
        [...inner.columns, ...[...inner.lists.keys()].map((list) => `${list} json`)].sort(),
      );
    } else if (kind.name !== 'foods') columns.push(`${at.join('.')} ${TYPES[kind.name] ?? 'json'}`);
  }
  return { columns, lists };
}

function read({ columns }: Pick<LearnedTable, 'columns'>): string[] {
  return columns.flatMap(({ from, type }) => (typeof from === 'string' ? [`${from} ${type}`] : [])).sort();
}

describe('what is known of the service’s events is learned from made-up ones', () => {
  const { shapes } = readShapes();
  test.each(shapes.map((shape) => [shape.types[0]!, shape] as const))('%s', (type, shape) => {
    const variants = [
      ...Array.from({ length: 24 }, () => 'full' as const),
      'absent',
      'absent',
      'null',
      'null',
    ] as const;
    const documents = variants.map((variant, n) => new MadeUpData(variant, n + 1).of(shape) as Json);
    const { tables, without } = inferred(documents, type);
    expect(without).toEqual([]);
    const { columns, lists } = expected(shape.fields);
    expect(read(tables[0]!)).toEqual(columns.sort());
    const nested = new Map((tables[0]!.nested ?? []).map((one) => [one.at, read(one)]));
    for (const [at, own] of lists) expect(nested.get(at)).toEqual(own);

    const [definition] = parseTables(writeTables(tables), 'tables.yaml');
    const items = tables[0]!.each === 'array' ? (documents as Json[][]).flat() : documents;
    const { rows, rejects, unknown } = shaped(definition!, items);
    expect([rejects, unknown]).toEqual([[], []]);
    expect(rows[definition!.name]).toHaveLength(items.length);
  });
});
