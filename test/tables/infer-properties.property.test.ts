import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { definitionOf, fileOf, type Json, type Row, shaped } from './infer-support.ts';
import { runCount } from '../support/run-count.ts';

/** Stands in every value and in every name that is data. */
const SECRET = 'zq';

const fields = ['id', 'updated_at', 'name', 'score', 'items', 'source', 'by_day', 'fooBar', 'a', 'b'];
const dataName = fc.oneof(
  fc.nat(9).map((n) => `2026-01-0${n + 1} ${SECRET}`),
  fc.nat(50).map((n) => `${SECRET}, no. ${n}`),
  fc.uuid().map((id) => `${SECRET}${id}`),
);
const scalar = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
  fc.constantFrom('2026-01-01', '2026-01-01T10:00:00Z', '2026-13-01', ''),
  fc.string().map((text) => `${SECRET}${text}`),
);
const { value: member } = fc.letrec<{ value: Json; object: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    tie('object'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(tie('object'), { maxLength: 3 }),
    fc.dictionary(dataName, tie('value'), { maxKeys: 3 }),
    fc.dictionary(dataName, tie('object'), { maxKeys: 3 }),
  ),
  object: fc.dictionary(fc.constantFrom(...fields), tie('value'), { maxKeys: 6 }),
}));
const document = fc.dictionary(
  fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...fields) }, { weight: 1, arbitrary: dataName }),
  member,
  { maxKeys: 8 },
);
/** Documents of one shape mostly, as events are: the same one with a few changes. */
const documents = fc
  .tuple(document, fc.array(document, { maxLength: 8 }))
  .map(([base, changes]) => [base, ...changes.map((change) => ({ ...base, ...change }))]);

interface FileColumn {
  name: string;
  from?: string | { parent?: string; of?: string };
}
interface FileRows {
  name: string;
  columns: FileColumn[];
  nested?: (FileRows & { at: string; each: 'array' | 'map' })[];
}

test('what is inferred takes all that it was inferred from, and nothing is lost', () => {
  fc.assert(
    fc.property(documents, (all) => {
      const [file] = (parse(fileOf(all)) as { tables: FileRows[] }).tables;
      const { rows, rejects } = shaped(definitionOf(all), all);
      expect(rejects).toEqual([]);
      const left = new Map(Object.entries(rows).map(([table, list]) => [table, [...list]]));
      for (const one of all) {
        const row = left.get(file!.name)!.shift()!;
        const built = rebuilt(file!, row);
        for (const nesting of file!.nested ?? []) {
          const original = at(one, nesting.at);
          const count = original === undefined || original === null ? 0 : Object.keys(original).length;
          if (count === 0) continue;
          const inner = left.get(nesting.name)!.splice(0, count);
          const items = inner.map((item) => rebuilt(nesting, item));
          const key = nesting.columns.find(({ from }) => typeof from === 'object' && from.of === 'key');
          const value =
            key === undefined
              ? items
              : Object.fromEntries(inner.map((item, n) => [item[key.name], items[n]]));
          put(built, nesting.at, value);
        }
        expect(plain(built)).toEqual(plain(one));
      }
      expect([...left.values()].flat()).toEqual([]);
    }),
    { numRuns: runCount({ quick: 40, long: 200 }) },
  );
});

test('the file holds no value, and no name that is data', () => {
  fc.assert(
    fc.property(documents, (all) => {
      expect(fileOf(all)).not.toContain(SECRET);
    }),
    { numRuns: runCount({ quick: 40, long: 200 }) },
  );
});

test('the same documents in another order give columns of the same types', () => {
  fc.assert(
    fc.property(documents, (all) => {
      expect(typesOf(all.toReversed())).toEqual(typesOf(all));
    }),
  );
});

function typesOf(list: readonly Json[]): string[] {
  return definitionOf(list)
    .columns.map(({ from, type }) => `${JSON.stringify(from)} ${type}`)
    .sort();
}

/** The object that a row says it was. */
function rebuilt({ columns }: FileRows, row: Row): Record<string, unknown> {
  const object = structuredClone((row['extra'] ?? {}) as Record<string, unknown>);
  for (const { name, from = name } of columns)
    if (typeof from === 'string' && row[name] !== undefined) put(object, from, row[name]);
  return object;
}

function put(object: Record<string, unknown>, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop()!;
  let inner = object;
  for (const name of names) inner = (inner[name] ??= {}) as Record<string, unknown>;
  inner[last] = value;
}

function at(root: Json, path: string): Json | undefined {
  return path
    .split('.')
    .reduce<Json | undefined>(
      (inner, name) => (inner as Record<string, Json> | null | undefined)?.[name],
      root,
    );
}

/** Without what a row has no place for: members that are null, objects and arrays with nothing in them. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .map(([name, inner]) => [name, plain(inner)] as const)
    .filter(([, inner]) => inner !== null);
  return members.length === 0 ? null : Object.fromEntries(members);
}
