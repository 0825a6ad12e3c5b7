import { expect, test } from 'vitest';
import { chunked, shapeAll } from './ndjson/support.ts';

/** Times at the ends of what readers of timestamps take, and whether their instants are inside. */
const TIMES: readonly (readonly [string, boolean])[] = [
  ['9999-12-31T23:59:59-12:00', false],
  ['9999-12-31T23:59:59.999999+00:00', true],
  ['9999-12-31T23:59:59.999999999Z', true],
  ['9999-12-31T23:59:59-00:01', false],
  ['9999-12-31T12:00:00-12', false],
  ['9999-12-31T11:59:59-1200', true],
  ['9999-12-31T23:59:59+14:00', true],
  ['0001-01-01T00:00:00+14:00', false],
  ['0001-01-01T00:00:00+00:01', false],
  ['0001-01-01T13:59:59+14:00', false],
  ['0001-01-01T14:00:00+14:00', true],
  ['0001-01-01T00:00:00Z', true],
  ['0001-01-01T00:00:00-12:00', true],
  ['9999-12-31', true],
];

const meal = (time: string): string => JSON.stringify({ id: 'm', timestamp: time });
const record = (time: string): string => JSON.stringify({ id: 'a', received_at: time, event: {} });

test.each([
  ['in lines', 'meals', 'timestamp', TIMES.map(([time]) => meal(time)).join('\n')],
  [
    'in bulk, which WebAssembly shapes',
    'meals',
    'timestamp',
    `{"meals":[${Array.from({ length: 300 }, () => TIMES.map(([time]) => meal(time))).join()}]}`,
  ],
  ['in records', 'events', 'received_at', TIMES.map(([time]) => record(time)).join('\n')],
])('a time whose instant is of no year from 1 to 9999 is in extra: %s', async (_, table, column, text) => {
  const { rows, rejects } = await shapeAll(chunked(text, [1e6]), { tables: [table] });
  expect(rejects).toEqual([]);
  const all = (rows[table] ?? '').trimEnd().split('\n');
  const found = all.slice(-TIMES.length).map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(found.map((row) => [row[column] ?? null, row['extra'] ?? null])).toEqual(
    TIMES.map(([time, isValid]) => (isValid ? [expect.any(String), null] : [null, { [column]: time }])),
  );
});
