import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { eventOf, exportOf, loaded } from './support.ts';

const HEART = 'daily.data.heartrate.created';
const SOURCE = { provider: 'made_up', type: 'ring' };
const at = (minute: number): string => `2026-03-01T10:${String(minute).padStart(2, '0')}:00+00:00`;
const sample = (minute: number, value: unknown, more: object = {}): object => {
  return { timestamp: at(minute), unit: 'bpm', value, ...more };
};
const samples = (...data: unknown[]): object => ({ source: SOURCE, data });

test('samples of one moment stay apart, however it is written', async () => {
  const times = [
    '11:00:00Z',
    '13:00:00+02:00',
    '11:00:00.000Z',
    '11:00:00.0000001',
    '09:30-0130',
    '11:00:00.5Z',
    '11:00:01Z',
    // Times that differ in less than a microsecond, and in one.
    '10:00:00.123456781Z',
    '10:00:00.123456782Z',
    '10:00:00.123457782Z',
  ];
  const data = times.map((time, value) => ({ ...sample(1, value), timestamp: `2026-03-01T${time}` }));
  const typed = [10, 11].map((value) => ({ ...sample(1, value), type: 'a' }));
  const event = eventOf(1, HEART, samples(...data, ...typed));
  const escaped = event.body.toString().replace('"type":"a"', String.raw`"type":"\u0061"`);
  const sql = await loaded([{ ...event, body: Buffer.from(escaped) }], 'timeseries');
  expect(await sql('SELECT value::INT, repetition::INT FROM timeseries_latest ORDER BY value')).toEqual([
    [0, null],
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
    [5, null],
    [6, null],
    [7, null],
    [8, 1],
    [9, null],
    [10, null],
    [11, 1],
  ]);
});

/** Spelt as ISO 8601 and RFC 3339 allow, and seconds after 2026-03-01T00:00:00Z. */
const SPELT: readonly (readonly [string, number])[] = [
  ['2026-03-01T10:00Z', 36_000],
  ['2026-03-01T10:00', 36_000],
  ['2026-03-01t10:00:01z', 36_001],
  ['2026-03-01 10:00:02.25z', 36_002.25],
  ['2026-03-01T10:00:03+0530', 16_203],
  ['2026-03-01T10:00:04.5-0530', 55_804.5],
  ['2026-03-01T10:00+02', 28_800],
  ['2026-03-01T10:00:05.123456789-02', 43_205.123_456],
  ['2026-03-01T10:00-02:30', 45_000],
  ['2026-03-01', 0],
];
const NO_TIMES = ['10', '10:0Z', '10:00:0Z', '10:00:00+2', '10:00:00+020', '10:00:00+02:0', '10:00:00Zz'];

test('times as ISO 8601 allows to spell them fill their column; what is none is in `extra`', async () => {
  const times = [...SPELT.map(([time]) => time), ...NO_TIMES.map((time) => `2026-03-01T${time}`)];
  const event = eventOf(
    1,
    HEART,
    samples(...times.map((time, value) => ({ ...sample(1, value), timestamp: time }))),
  );
  const sql = await loaded([event], 'timeseries');
  const begin = Date.parse('2026-03-01T00:00:00Z') * 1000;
  expect(
    await sql(
      `SELECT value::INT, (epoch_us(timestamp) - ${begin})::DOUBLE, extra->>'timestamp' FROM timeseries ORDER BY 1`,
    ),
  ).toEqual(
    times.map((time, value) =>
      value < SPELT.length ? [value, Math.round((SPELT[value]?.[1] ?? 0) * 1e6), null] : [value, null, time],
    ),
  );
  // What databases read that are given text.
  const { all } = await exportOf([event], 'timeseries');
  const written = (all['timeseries'] ?? []).slice(0, SPELT.length).map((row) => String(row['timestamp']));
  expect(written).toHaveLength(SPELT.length);
  for (const [n, time] of written.entries()) {
    expect(time).toMatch(/^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?$/);
    const utc = /(Z|[+-]..:..)$/.test(time) || time.length === 10 ? time : `${time}Z`;
    expect(Date.parse(utc) - begin / 1000).toBe(Math.floor((SPELT[n]?.[1] ?? 0) * 1000));
  }
});

test('samples that only their values tell apart stay apart, and one that is sent again replaces itself', async () => {
  const sql = await loaded(
    [
      eventOf(1, HEART, samples(sample(1, 60), sample(2, 61), sample(2, 62), sample(3, 63))),
      eventOf(2, 'daily.data.heartrate.updated', samples(sample(2, 71), sample(2, 72))),
      eventOf(3, HEART, samples(sample(1, 80)), 'user-2'),
      eventOf(4, 'daily.data.hrv.created', samples(sample(1, 90))),
      eventOf(5, HEART, { source: { provider: 'another' }, data: [sample(1, 100)] }),
    ],
    'timeseries',
  );
  const rows = await sql(
    `SELECT user_id, resource, source_provider, strftime(timestamp, '%M'), repetition::INT, value::INT
     FROM timeseries_latest ORDER BY ALL NULLS FIRST`,
  );
  expect(rows).toEqual([
    ['user-1', 'heartrate', 'another', '01', null, 100],
    ['user-1', 'heartrate', 'made_up', '01', null, 60],
    ['user-1', 'heartrate', 'made_up', '02', null, 71],
    ['user-1', 'heartrate', 'made_up', '02', 1, 72],
    ['user-1', 'heartrate', 'made_up', '03', null, 63],
    ['user-1', 'hrv', 'made_up', '01', null, 90],
    ['user-2', 'heartrate', 'made_up', '01', null, 80],
  ]);
  expect(await sql('SELECT count(*)::INT FROM timeseries')).toEqual([[9]]);
  const guide = readFileSync('docs/lake.md', 'utf8');
  const query = /```sql\n(SELECT user_id, date_trunc[^`]*)/.exec(guide)?.[1] ?? 'no query';
  const days = await sql(query.replace(';', ' ORDER BY user_id'));
  expect(days.map(([user, , least, , greatest]) => [user, Number(least), Number(greatest)])).toEqual([
    ['user-1', 60, 100],
    ['user-2', 80, 80],
  ]);
});

test('samples that differ in more than their values are never merged, in any events', async () => {
  const pairs = [
    [{ type: 'ldl' }, { type: 'hdl' }],
    [{ id: 1 }, { id: 2 }],
    [{ start: at(1) }, { start: at(2) }],
    [{ end: at(1) }, { end: at(2) }],
    [{ intensity: 'low' }, { intensity: 'high' }],
    [{ sensor_location: 'ear' }, { sensor_location: 'toe' }],
    [{ delivery_mode: 'basal' }, { delivery_mode: 'bolus' }],
  ];
  const events = pairs.flatMap((pair, n) =>
    pair.map((more, i) => eventOf(n * 2 + i, HEART, samples(sample(n, 60 + i, more)))),
  );
  const sql = await loaded(events, 'timeseries');
  expect(await sql('SELECT count(*)::INT, count(DISTINCT timestamp)::INT FROM timeseries_latest')).toEqual([
    [pairs.length * 2, pairs.length],
  ]);
});

test('an unknown type has rows when its data is a list of samples, and is counted when it is not', async () => {
  const { all, rejects, without_table } = await exportOf(
    [
      eventOf(1, 'daily.data.brand.new.created', samples(sample(1, 1.5))),
      eventOf(2, 'daily.data.not_a_list.created', { id: 'a', source: SOURCE }),
      eventOf(3, 'daily.data.not_a_list.updated', { source: SOURCE, data: { Tea: {} } }),
      eventOf(4, 'daily.data.numbers.created', samples(1, 2, 3)),
      eventOf(5, 'daily.data.a_text.created', 'text'),
      eventOf(6, 'daily.data.odd_source.created', { source: 'text', data: [sample(1, 1)] }),
      eventOf(7, HEART, samples()),
    ],
    'timeseries',
  );
  expect(all['timeseries']).toMatchObject([
    { resource: 'brand.new', value: 1.5, timestamp: at(1) },
    { resource: 'odd_source', value: 1, batch_extra: { source: 'text' } },
  ]);
  expect(rejects).toBe(0);
  expect(without_table).toEqual({
    'daily.data.not_a_list.created': 1,
    'daily.data.not_a_list.updated': 1,
    'daily.data.numbers.created': 1,
    'daily.data.a_text.created': 1,
  });
});

test('values of every kind are kept, and so is what stands around the samples', async () => {
  const data = {
    ...samples(
      sample(1, 'a note', { tags: ['food'] }),
      sample(2, true),
      { timestamp: 'noon', value: null, systolic: 120 },
      'no sample',
    ),
    batch: { n: 7 },
  };
  const around = { ...data, source: { ...SOURCE, firmware: '1.2' } };
  const { all, messages, rejects } = await exportOf(
    [eventOf(1, 'daily.data.note.created', around)],
    'timeseries',
  );
  const [note, odd, pressure, ...none] = all['timeseries'] ?? [];
  const batch_extra = { source: { firmware: '1.2' }, batch: { n: 7 } };
  expect(note).toMatchObject({ value_text: 'a note', tags: ['food'], batch_extra, source_type: 'ring' });
  expect(note).not.toHaveProperty('value');
  expect(odd).toMatchObject({ extra: { value: true }, batch_extra });
  expect(pressure).toMatchObject({ systolic: 120, extra: { timestamp: 'noon' } });
  expect(none).toEqual([]);
  expect([rejects, messages.filter((line) => line.endsWith('wrong_type'))]).toEqual([
    1,
    [expect.any(String)],
  ]);
});

test('a value that comes twice counts once: the last, and the one before is in extra', async () => {
  const text = `{"data":{"data":[{"value":1,"value":"two"},{"value":"one","value":2},{"value":3,"value":null}]}}`;
  const event = { ...eventOf(1, HEART, null), body: Buffer.from(text) };
  const { all } = await exportOf([event], 'timeseries');
  expect(all['timeseries']).toMatchObject([
    { value_text: 'two', extra: { value: 1 } },
    { value: 2, extra: { value: 'one' } },
    { extra: { value: 3 } },
  ]);
});

const result = (id: string, n: number): object => {
  return { query_id: id, query_slug: 'slug', data: { day: [n] } };
};

test('data that is an array has a row an item', async () => {
  const type = 'continuous_query.result_table.changed';
  const { all, rejects, without_table } = await exportOf(
    [
      eventOf(1, type, [result('a', 1), result('b', 2)]),
      eventOf(2, type, result('c', 3)),
      eventOf(3, type, [7]),
      eventOf(4, type, []),
    ],
    'continuous_query_results',
  );
  expect(all['continuous_query_results']).toMatchObject([
    { query_id: 'a', data: { day: [1] }, _event_id: 'msg_1' },
    { query_id: 'b', data: { day: [2] }, _event_id: 'msg_1' },
    { query_id: 'c', data: { day: [3] }, _event_id: 'msg_2' },
  ]);
  expect({ rejects, without_table }).toEqual({ rejects: 0, without_table: { [type]: 1 } });
});
