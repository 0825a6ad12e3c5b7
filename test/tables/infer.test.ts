import { describe, expect, test } from 'vitest';
import { Observer } from '../../src/tables/learned/infer/observe.ts';
import type { SeenField } from '../../src/tables/learned/infer/seen-field.ts';
import { propose } from '../../src/tables/learned/infer/propose.ts';
import { nameKind } from '../../src/core/data-names.ts';
import { columnsOf, definitionOf, fileOf, inferred, type Json, shaped, tableOf } from './infer-support.ts';

const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

describe('types', () => {
  test.each<[string, Json[], string]>([
    ['texts', ['a', ''], 'text'],
    ['whole numbers', [1, -2], 'integer'],
    ['numbers', [1, 1.5], 'decimal'],
    ['truths', [true, false], 'boolean'],
    ['days', ['2026-02-28', '2024-02-29'], 'date'],
    ['days and times', ['2026-02-28', '2026-02-28T10:00:00Z'], 'timestamp'],
    ['a day that there is not, among days', ['2026-02-28', '2026-02-30'], 'text'],
    ['times and texts', ['2026-02-28T10:00:00Z', 'soon'], 'text'],
    ['nothing but null', [null, null], 'json'],
    ['null among numbers', [null, 3], 'integer'],
    ['numbers and texts', [1, 'one'], 'json'],
    ['an object and a text', [{ a: 1 }, 'one'], 'json'],
    ['an array of numbers', [[1, 2], []], 'json'],
    ['arrays with nothing', [[]], 'json'],
    ['an array of objects and null', [[{ a: 1 }, null]], 'json'],
    ['an object with nothing', [{}], 'json'],
  ])('%s', (_, values, type) => {
    expect(columnsOf(tableOf(values.map((value) => ({ value }))))).toEqual([`value ${type}`]);
  });

  test('numbers that no column of numbers takes are JSON', () => {
    const documents = ['1', '1e300'].map((text) => `{"value":${text}}`);
    const { tables } = inferred(documents.map((text) => JSON.parse(text) as Json));
    expect(columnsOf(tables[0]!)).toEqual(['value json']);
  });
});

describe('shape', () => {
  test('objects become columns, joined with _, and what lies too deep is JSON', () => {
    const deep = { a: { b: { c: { d: { e: { f: 1 } } } } }, plain: { x: 1 } };
    expect(columnsOf(tableOf([deep]))).toEqual(['a_b_c_d_e json', 'plain_x integer']);
  });

  test('names are made for a warehouse, and never meet', () => {
    const document = { heartRate: 1, heart_rate: 2, a: { b: 1 }, a_b: 2, extra: 3, dt: 4, user_id: 5 };
    expect(columnsOf(tableOf([document])).map((column) => column.split(' ')[0])).toEqual([
      'heart_rate',
      'heart_rate_2',
      'a_b',
      'a_b_2',
      'extra_2',
      'dt_2',
      'data_user_id',
    ]);
  });

  test('a user_id that is a text stays as it is', () => {
    expect(columnsOf(tableOf([{ user_id: 'u' }]))).toEqual(['user_id text']);
  });

  test('key and newest are guessed when every document has an id', () => {
    const documents = [1, 2].map((n) => ({ id: uuid(n), updated_at: '2026-01-01T00:00:00Z', n }));
    expect(tableOf(documents)).toMatchObject({ key: ['id'], newest: 'updated_at' });
    expect(tableOf([...documents, { n: 3 }])).toMatchObject({ key: [] });
    expect(tableOf([...documents, { id: '', n: 3 }])).toMatchObject({ key: [] });
    expect(tableOf([{ id: 1.5 }])).toMatchObject({ key: [] });
  });

  test('an array of objects is a table of its own, joined by the key', () => {
    const table = tableOf([
      { id: 7, updated_at: '2026-01-01T00:00:00Z', list: { items: [{ n: 1, tags: [{ a: 1 }] }] } },
    ]);
    expect(columnsOf(table)).toEqual(['id integer', 'updated_at timestamp']);
    expect(table.nested).toHaveLength(1);
    const [items] = table.nested!;
    expect(items).toMatchObject({
      at: 'list.items',
      each: 'array',
      name: 'raw_thing_list_items',
      key: ['raw_thing_id', 'item_index'],
    });
    expect(columnsOf(items!)).toEqual([
      'raw_thing_id integer',
      'raw_thing_updated_at timestamp',
      'item_index integer',
      'n integer',
      'tags json',
    ]);
  });

  test('data that is an array of objects: each item is a row', () => {
    const table = tableOf([
      [{ id: 'a', n: 1 }],
      [
        { id: 'b', n: 2 },
        { id: 'c', n: 3 },
      ],
    ]);
    expect(table).toMatchObject({ each: 'array', key: ['id'] });
    expect(columnsOf(table)).toEqual(['id text', 'n integer']);
  });

  test('a name with a dot has no path, and stays in extra', () => {
    const documents: Json[] = [{ 'a.b': 1, '': 2, c: 3 }];
    expect(columnsOf(tableOf(documents))).toEqual(['c integer']);
    const { rows, rejects } = shaped(definitionOf(documents), documents);
    expect(rejects).toEqual([]);
    expect(rows['raw_thing']).toMatchObject([{ c: 3, extra: { 'a.b': 1, '': 2 } }]);
  });

  test('a member named constructor is a column like others', () => {
    const documents: Json[] = [{ constructor: 'x', to_string: 1 }];
    const { rows } = shaped(definitionOf(documents), documents);
    expect(rows['raw_thing']).toEqual([
      { constructor: 'x', to_string: 1, _row_id: expect.any(String) as string },
    ]);
  });
});

test.each([
  ['heart_rate', 'field'],
  ['heartRate', 'field'],
  ['omega3', 'field'],
  ['forced_expiratory_volume_1', 'field'],
  ['SleepScore', 'doubtful'],
  ['x-ray', 'doubtful'],
  ['a.b', 'doubtful'],
  ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'data'],
  ['customer-patient-1234', 'data'],
  ['JA1X9ZK3M8Q2W7E5R4T6Y0U1P9', 'data'],
  ['made.up@example.com', 'data'],
  ['2026-01-01', 'data'],
  ['10:00', 'data'],
  ['42', 'data'],
  ['Coffee, black', 'data'],
  ['Käse', 'data'],
  ['', 'data'],
  ['a'.repeat(65), 'data'],
])('the name %j looks like %s', (name, kind) => {
  expect(nameKind(name)).toBe(kind);
});

describe('maps: what is named by data never names a column', () => {
  const food = { energy: { unit: 'kcal', value: 1 }, weight: 2 };
  test.each<[string, Json[]]>([
    ['foods', [{ m: { 'Coffee, black, 1 tbsp(s)': food, Milk: food } }]],
    ['foods of one word', [{ m: { Banana: food, Milk: food } }]],
    ['foods of one small word', [{ m: { banana: food, milk: food } }, { m: { rice: food } }]],
    ['ids', [{ m: { [uuid(1)]: food } }, { m: { [uuid(2)]: food } }]],
    ['days', [{ m: { '2026-01-01': food } }]],
    ['numbers', [{ m: { 1: food, 2: food } }]],
    [
      'words, ever new',
      Array.from({ length: 40 }, (_, n) => ({ m: { [`w${'abcdefghij'[n % 10]}${n}`]: food } })),
    ],
  ])('%s with objects are rows', (_, documents) => {
    const table = tableOf(documents.map((document) => ({ ...(document as object), n: 1 })));
    expect(columnsOf(table)).toEqual(['n integer']);
    expect(table.nested).toMatchObject([{ at: 'm', each: 'map' }]);
    expect(columnsOf(table.nested![0]!)).toEqual([
      'item_index integer',
      'item_name text',
      'energy_unit text',
      'energy_value integer',
      'weight integer',
    ]);
  });

  test.each<[string, Json[]]>([
    ['days', [{ m: { '2026-01-01': 1, '2026-01-02': 2 } }]],
    [
      'words, ever new',
      Array.from({ length: 40 }, (_, n) => ({ m: { [`w${'abcdefghij'[n % 10]}${n}`]: n } })),
    ],
    ['names of people', [{ m: { Anna: 1, Bob: 2 } }]],
    ['names of people, small', [{ m: { anna: 1 } }, { m: { bob: 2 } }]],
    ['foods, one of which could be a field', [{ m: { 'Coffee, black': 1, milk: 2 } }]],
  ])('%s with numbers are JSON', (_, documents) => {
    expect(columnsOf(tableOf(documents))).toEqual(['m json']);
  });

  test('one name that is data beside fields stays in extra', () => {
    const documents: Json[] = [1, 2, 3].map((n) => ({ id: n, name: 'n', [uuid(n)]: n }));
    expect(columnsOf(tableOf(documents))).toEqual(['id integer', 'name text']);
    const { rows } = shaped(definitionOf(documents), documents);
    expect(rows['raw_thing']![0]).toEqual({ id: 1, name: 'n', extra: { [uuid(1)]: 1 } });
  });

  test('many optional fields are still fields', () => {
    const documents = Array.from({ length: 400 }, (_, n) =>
      Object.fromEntries(Array.from({ length: 10 }, (__, i) => [`field_${(n * 7 + i * 11) % 150}_x`, n])),
    );
    expect(tableOf(documents).columns.length).toBe(150);
  });

  test('capitalised names that nearly every object has are fields', () => {
    const documents = Array.from({ length: 30 }, (_, n) => ({ SleepScore: n, Total: { Minutes: n } }));
    expect(columnsOf(tableOf(documents))).toEqual(['sleep_score integer', 'total_minutes integer']);
  });
});

describe('events', () => {
  test('types of one thing are one table; what is named is free', () => {
    const { inference } = { inference: inferred([{ a: 1 }], 'daily.data.new_thing.created') };
    expect(inference.tables).toMatchObject([{ name: 'new_thing', events: ['daily.data.new_thing.'] }]);
    expect(inferred([{ a: 1 }], 'provider.thing.error').tables).toMatchObject([
      { name: 'provider_thing_error', events: ['provider.thing.error'] },
    ]);
  });

  test('an id inside a type is cut off and never named', () => {
    const { tables } = inferred([{ a: 1 }], `raw.garmin.${uuid(3)}.created`);
    expect(tables).toMatchObject([{ name: 'raw_garmin', events: ['raw.garmin.'] }]);
    expect(JSON.stringify(tables)).not.toContain(uuid(3));
  });

  test('events without data make no table, and are said', () => {
    expect(inferred(['text', 3])).toEqual({
      tables: [],
      without: [{ events: 'raw.thing.', count: 2, reason: 'neither an object nor an array of objects' }],
    });
  });

  test('the limit bounds what is looked at, not what is counted', () => {
    const documents = Array.from({ length: 20 }, (_, n) => (n < 5 ? { a: n } : { a: 'text' }));
    const { tables } = inferred(documents, 'raw.thing.created', 5);
    expect(tables[0]!.note).toContain('20 events, raw.thing.created 20; 5 looked at');
    expect(columnsOf(tables[0]!)).toEqual(['a integer']);
  });
});

test('a file says what it guesses, and how often what was seen', () => {
  const file = fileOf(
    [1, 2].map((n) => ({ id: uuid(n), updated_at: '2026-01-01T00:00:00Z', ...(n > 1 ? { n } : {}) })),
  );
  expect(file).toContain('key: [ id ] # a guess\n');
  expect(file).toContain('newest: updated_at # a guess\n');
  expect(file).toContain('- { name: n, type: integer, share: 0.5 } # in 1 of 2: integer 1\n');
  expect(file).not.toMatch(/ +\n/);
});

test('no more places are remembered than there is room for, and the rest is said', () => {
  const observer = new Observer({ left: 100 });
  for (let n = 0; n < 200; n += 1)
    observer.add(Buffer.from(JSON.stringify({ [`a_${n}`]: { b: [{ c: n }] }, steady: n })));
  expect(placesIn(observer.root)).toBe(101);
  expect(observer.root.kinds.object).toBe(200);
  expect(propose('t', observer.root, new Set()).note).toContain('some were not looked at');
});

function placesIn(place: SeenField | null): number {
  if (place === null) return 0;
  const inner = [...(place.members?.values() ?? []), place.values, place.items];
  return inner.reduce((sum, one) => sum + placesIn(one), 1);
}
