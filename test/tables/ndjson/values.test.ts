import { describe, expect, test } from 'vitest';
import { chunked, shapeAll } from './support.ts';

type Row = Readonly<Record<string, unknown>>;

/** The rows of a document: read alone, and among so many that WebAssembly shapes the usual ones. */
async function rowsBothWays(table: string, list: string, text: string): Promise<Row[]> {
  const usual = `{"id":"usual","source":{"provider":"${'p'.repeat(100)}"}}`;
  const many = `{"${list}":[${`${usual},`.repeat(2000)}${text}]}`;
  const [alone, last] = await Promise.all(
    [`[${text}]`, many].map(async (whole) => {
      const { rows, rejects } = await shapeAll(chunked(whole, [50_000]), { tables: [table] });
      expect(rejects).toEqual([]);
      const lines = (rows[table] ?? '').trimEnd().split('\n');
      return lines.filter((line) => !line.includes('"usual"')).map((line) => JSON.parse(line) as Row);
    }),
  );
  expect(last).toEqual(alone);
  return alone ?? [];
}

const TIMES: readonly (readonly [written: string, inRow: string | null])[] = [
  ['2026-01-02T10:00:00,5Z', '2026-01-02T10:00:00.5Z'],
  ['2026-01-02T10Z', '2026-01-02T10:00:00Z'],
  ['20260102T100000Z', '2026-01-02T10:00:00Z'],
  ['20260102T1000+0530', '2026-01-02T04:30:00Z'],
  ['2026-W01-5T10:00:00Z', '2026-01-02T10:00:00Z'],
  ['2026W015T100000.1234567Z', '2026-01-02T10:00:00.123456Z'],
  ['2020-W53-5T00:00:00Z', '2021-01-01T00:00:00Z'],
  ['2026-002T10:00:00Z', '2026-01-02T10:00:00Z'],
  ['2026-01-01T24:00:00Z', '2026-01-02T00:00:00Z'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z'],
  ['2017-01-01T05:29:60+05:30', '2017-01-01T00:00:00Z'],
  ['2026-01-02 10:00:00 +0000', '2026-01-02T10:00:00Z'],
  ['2026-01-02T10:00:00+05:53:28', '2026-01-02T04:06:32Z'],
  ['2026-01-02T10:00:00+0530', '2026-01-02T10:00:00+05:30'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
  ['9999-12-31T24:00:00Z', null],
  ['2026-01-01T24:00:01Z', null],
  ['2026-01-01T10:00:60Z', null],
  ['2026-W54-1T10:00:00Z', null],
  ['2025-366T10:00:00Z', null],
  ['20260230T100000Z', null],
  ['20260102', null],
  ['soon', null],
];

test('a time in any form of ISO 8601 is in its column; another text is in extra', async () => {
  const meals = TIMES.map(([time], n) => JSON.stringify({ id: `m${n}`, timestamp: time }));
  const rows = await rowsBothWays('meals', 'meals', meals.join());
  expect(rows.map((row) => [row['timestamp'] ?? null, row['extra']])).toEqual(
    TIMES.map(([time, inRow]) => [inRow, inRow === null ? { timestamp: time } : undefined]),
  );
});

test('samples with times that are read alike are numbered, and others are merged with no row', async () => {
  const times = [
    '2026-01-01T24:00:00Z',
    '2026-01-02T00:00:00Z',
    '20260102T000000Z',
    1_767_261_600,
    null,
    'soon',
  ];
  const data = times.map((timestamp, value) => ({ timestamp, value }));
  const { rows } = await shapeAll(chunked(JSON.stringify({ source: {}, data }), [1e6]), {
    tables: ['timeseries'],
    given: { user_id: 'u1', resource: 'heartrate' },
  });
  const all = (rows['timeseries'] ?? '').trimEnd().split('\n');
  const found = all.map((line) => JSON.parse(line) as Row);
  expect(found.map(({ repetition }) => repetition)).toEqual([undefined, 1, 2, undefined, 1, 2]);
  expect(new Set(found.map((row) => row['_row_id'])).size).toBe(4);
});

test.each([
  ['28800.0', 28_800],
  ['2.88e4', 28_800],
  ['1E2', 100],
  ['-62.00', -62],
  ['120e-1', 12],
  ['9.223372036854775807e18', '9223372036854775807'],
  ['9.3e18', null],
  ['0.5', null],
  ['1e400', null],
])('the whole number %s fills a column of integers exactly', async (written, value) => {
  const text = `{"id":"s1","duration":${written}}`;
  const { rows } = await shapeAll(chunked(text, [1e6]), { tables: ['sleep'] });
  if (value === null) expect(rows['sleep']).toMatch(/^\{"id":"s1","extra":\{"duration":/);
  else expect(rows['sleep']).toBe(`{"id":"s1","duration":${value}}\n`);
  await rowsBothWays('sleep', 'sleep', text);
});

describe('the last of repeated members counts as a whole, and an earlier one is in extra', () => {
  test.each([
    [
      '"energy":{"value":1,"unit":"kJ"},"energy":{"value":2},"source":{"provider":"a","type":"t"},"source":{"provider":"b"}',
      {
        energy_value: 2,
        source_provider: 'b',
        extra: { energy: { value: 1, unit: 'kJ' }, source: { provider: 'a', type: 't' } },
      },
    ],
    ['"energy":{"value":1},"energy":null', { extra: { energy: { value: 1 } } }],
    ['"energy":null,"energy":{"value":1}', { energy_value: 1 }],
    [
      '"macros":{"fats":{"total":1},"fats":{"saturated":2}},"macros":{"carbs":3}',
      { carbs_g: 3, extra: { macros: { fats: { total: 1, saturated: 2 } } } },
    ],
  ])('%s', async (members, columns) => {
    expect(await rowsBothWays('meals', 'meals', `{"id":"m1",${members}}`)).toEqual([
      { id: 'm1', ...columns },
    ]);
  });

  test('rows inside too', async () => {
    const text =
      '{"id":"m1","data":{"Tea":{},"Milk":{}},"data":{"Bread":{"energy":{"unit":"J"},"energy":{"value":2}}}}';
    const { rows } = await shapeAll(chunked(text, [1e6]));
    expect(rows).toEqual({
      meals: '{"id":"m1","extra":{"data":{"Tea":{},"Milk":{}}}}\n',
      meal_items:
        '{"meal_id":"m1","item_index":0,"name":"Bread","energy_value":2,"extra":{"energy":{"unit":"J"}}}\n',
    });
  });
});

test.each([
  [
    'parsing_job_results',
    '{"id":"j","data":{"results":[{"test_name":"a","value":"1",MEMBERS}]}}',
    '"is_below_min_range":false,"is_above_max_range":true,"type":"numeric","measurement_kind":"direct",' +
      '"source_panel_name":"CMP","sensitivity":"insensitive","loinc_match_status":"auto_match"',
  ],
  [
    'historical_pull_resources',
    '{"user_id":"u","provider":{"p":{"pulled":{"meal":{"release":"v2","timeline":{MEMBERS}}}}}}',
    '"scheduled_at":"2026-01-01T00:00:00Z","started_at":"2026-01-01T00:01:00Z"',
  ],
  [
    'area_centers',
    '{"zip_code":"12345","central_labs":{"a":{MEMBERS}}}',
    '"lab_id":27,"supported_bill_types":["x"]',
  ],
])('%s has a column for each member that answers are known to have', async (table, document, members) => {
  const { rows } = await shapeAll(chunked(document.replace('MEMBERS', members), [1e6]), { tables: [table] });
  const row = JSON.parse(rows[table] ?? '') as Row;
  expect(row).toMatchObject(JSON.parse(`{${members}}`) as Row);
  expect(row['extra']).toBeUndefined();
});
