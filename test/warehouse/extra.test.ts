import { DuckDBInstance } from '@duckdb/node-api';
import * as fc from 'fast-check';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ByteWriter } from '../../src/lib/byte-writer.ts';
import { Shaper } from '../../src/warehouse/shape/shape.ts';
import { TABLES } from '../../src/warehouse/tables.ts';
import { temporaryFolder } from '../support/folders.ts';

/** A member of an object, as it is written: the same name may come again. */
type Member = readonly [name: string, value: Value];
type Value = string | number | boolean | null | readonly Value[] | { readonly members: readonly Member[] };

function written(value: Value): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (!('members' in value)) return `[${value.map(written).join(',')}]`;
  return `{${value.members.map(([name, one]) => `${JSON.stringify(name)}:${written(one)}`).join(', ')}}`;
}

/** Few names, so that they meet; none like a number, which JavaScript would move to the front. */
const UNKNOWN = ['xa', 'xb', 'x"c', 'xé'];

const { value: anything } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Value>(0, 7, true, 'text', 'é"\\', null),
    fc.array(tie('value'), { maxLength: 2 }),
    fc
      .array(fc.tuple(fc.constantFrom(...UNKNOWN), tie('value')), { maxLength: 4 })
      .map((members) => ({ members })),
  ),
}));

const objectOf = (names: Readonly<Record<string, fc.Arbitrary<Value>>>): fc.Arbitrary<Value> => {
  const member = fc.oneof(
    ...Object.entries(names).map(([name, value]) => fc.tuple(fc.constant(name), value)),
    fc.tuple(fc.constantFrom(...UNKNOWN), anything),
  );
  return fc.array(member, { maxLength: 8 }).map((members) => ({ members }));
};

const word = fc.constantFrom<Value>('a', 'b', 3, null);
const SOURCE = objectOf({ provider: word, slug: word, name: word, logo: word, type: word });
const NUTRITION = objectOf({
  carbs: fc.constantFrom<Value>(1, 2.5, 'none'),
  fats: objectOf({ total: word }),
});
const MEAL = objectOf({
  name: word,
  source: SOURCE,
  energy: objectOf({ unit: word, value: word }),
  macros: NUTRITION,
  source_id: word,
}).map((meal): string => {
  const members = (meal as { members: readonly Member[] }).members;
  return written({ members: [['id', 'm'], ...members] });
});

const rejects: string[] = [];
const shaper = new Shaper(TABLES.get('meals')!, {
  tables: ['meals'],
  onReject: ({ reason }) => rejects.push(reason),
});

function rowOf(meal: string): string {
  shaper.shape(Buffer.from(meal));
  expect(rejects).toEqual([]);
  return shaper.take('meals', new ByteWriter()).view().toString().trimEnd();
}

test('`extra` names no member twice, and has every unknown member as JSON.parse reads it', () => {
  fc.assert(
    fc.property(MEAL, (meal) => {
      const row = rowOf(meal);
      const { extra } = JSON.parse(row) as { extra?: unknown };
      // What is written comes back letter by letter only when nothing was repeated.
      expect(JSON.stringify(JSON.parse(row))).toBe(row);
      for (const [path, value] of unknowns(JSON.parse(meal), [])) {
        const found = path.reduce<unknown>((at, step) => Reflect.get(Object(at), step), extra);
        expect([path, holds(found, value)]).toEqual([path, true]);
      }
    }),
    { numRuns: 1000 },
  );
});

/** Members that no column reads, where they stand outside of each other. */
function unknowns(value: unknown, path: readonly string[]): [string[], unknown][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) => {
    const here = [...path, name];
    return UNKNOWN.includes(name) ? [[here, one] as [string[], unknown]] : unknowns(one, here);
  });
}

/** Of objects that were put together there may be more. */
function holds(found: unknown, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Object.is(found, value);
  if (typeof found !== 'object' || found === null || Array.isArray(value) !== Array.isArray(found))
    return false;
  return Object.entries(value).every(([name, one]) => holds(Reflect.get(found, name), one));
}

test('DuckDB reads a file of meals whose `source` is in `extra` for two reasons', async () => {
  const file = join(await temporaryFolder(), 'meals.ndjson');
  const source = '{"provider":"made_up","slug":"older","colour":"red"}';
  const rows = [
    rowOf(`{"id":"m","source":${source}}`),
    rowOf(`{"id":"n","source":${source},"colour":1,"source":${source},"colour":2}`),
  ];
  writeFileSync(file, `${rows.join('\n')}\n`);
  const db = await (await DuckDBInstance.create()).connect();
  onTestFinished(() => db.closeSync());
  const found = await db.runAndReadAll(
    `SELECT id, coalesce(source_slug, extra.source.slug), extra.source.colour FROM read_ndjson('${file}')`,
  );
  expect(found.getRowsJson()).toEqual([
    ['m', 'older', 'red'],
    ['n', 'older', 'red'],
  ]);
});
