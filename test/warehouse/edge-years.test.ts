import { expect, test } from 'vitest';
import { ByteWriter } from '../../src/lib/byte-writer.ts';
import { shapeText } from '../../src/ndjson/shape-text.ts';
import { Shaper } from '../../src/warehouse/shape/shape.ts';
import { TABLES } from '../../src/warehouse/tables.ts';

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

type Row = Readonly<Record<string, unknown>>;

const columnsOf = (row: Row | undefined): unknown => [row?.['timestamp'] ?? null, row?.['extra'] ?? null];
const wanted = TIMES.map(([time, fits]) => (fits ? [expect.any(String), null] : [null, { timestamp: time }]));

async function rowsOf(text: string, table: string): Promise<Row[]> {
  const rows: Row[] = [];
  async function* chunks(): AsyncGenerator<Buffer> {
    yield Buffer.from(text);
  }
  await shapeText(chunks(), {
    tables: [table],
    write: (_, bytes) => {
      for (const line of bytes.toString().split('\n').filter(Boolean)) rows.push(JSON.parse(line) as Row);
      return Promise.resolve();
    },
    onReject: (reject) => expect.fail(JSON.stringify(reject)),
  });
  return rows;
}

const meal = (time: string, n: number): string => JSON.stringify({ id: `m${n}`, timestamp: time });

test('a time whose instant is of no year from 1 to 9999 is in extra', async () => {
  const rows = await rowsOf(TIMES.map(([time], n) => meal(time, n)).join('\n'), 'meals');
  expect(rows.map(columnsOf)).toEqual(wanted);
});

test('so it is in bulk, which WebAssembly shapes', async () => {
  const times = Array.from({ length: 300 }, () => TIMES).flat();
  const text = `{"meals":[${times.map(([time], n) => meal(time, n)).join(',')}]}`;
  const rows = await rowsOf(text, 'meals');
  expect(rows).toHaveLength(times.length);
  expect(rows.slice(-TIMES.length).map(columnsOf)).toEqual(wanted);
});

test('and in records, which are read quickly', () => {
  const entry = TABLES.get('events');
  if (entry === undefined) expect.fail('there is no such table');
  for (const [time, fits] of TIMES) {
    const shaper = new Shaper(entry, { tables: ['events'], onReject: ({ reason }) => expect.fail(reason) });
    shaper.shape(Buffer.from(JSON.stringify({ id: 'a', received_at: time, event: {} })));
    const row = JSON.parse(shaper.take('events', new ByteWriter()).view().toString()) as Row;
    expect([time, typeof row['received_at']]).toEqual([time, fits ? 'string' : 'undefined']);
    expect(row['extra']).toEqual(fits ? undefined : { received_at: time });
  }
});
