import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { duckdb, exported } from './support.ts';

// Columns that have the same values in every row are kept and compressed once: a reader finds them in each.

/** What stands in a record, as JSON, and the time that a reader is to find. */
const RECORDS = [
  { id: '"msg_1"', type: '"daily.data.meal.x"', at: '"2026-01-02T03:04:05.006Z"', time: '03:04:05.006' },
  {
    id: '"\\u00e9\\"\\\\"',
    type: '"d\\u0061ily.data.meal.é"',
    at: '"2026-01-02T03:04:05+02:00"',
    time: '01:04:05',
  },
  { id: '"é"', type: '"daily.data.meal.\\n"', at: '"2026-01-02t03:04:05.1234567z"', time: '03:04:05.123456' },
  { id: '"msg_4"', type: '"daily.data.meal."', at: '"noon"', time: null },
];

/** @param more bytes of text in each document */
async function archiveOf(count: number, more: number): Promise<string> {
  const folder = await temporaryFolder();
  const lines = Array.from({ length: count }, (_, n) => {
    const { id, type, at } = RECORDS[n % RECORDS.length]!;
    const body = `{"data":{"id":"meal-${n}","name":"${'x'.repeat(more)}","data":{"Made up":{}}}}`;
    const whose = `"team_id":null,"user_id":"user-1","client_user_id":null`;
    return `{"id":${id},"source":"webhooks","received_at":${at},"event_type":${type},${whose},"headers":{},"event":${body}}\n`;
  });
  writeFileSync(join(folder, 'a.ndjson'), lines.join(''));
  return folder;
}

it.each([
  ['events, few, which are joined', 'events', 8, 0],
  ['events, enough for a row group at once', 'events', 120, 20_000],
  ['meals, few, which are joined', 'meals', 8, 0],
  ['meals, enough for a row group at once', 'meals', 120, 20_000],
] as const)(
  '%s: each row says which event it is of, and when that came in',
  async (_, table, count, more) => {
    const [path, out] = [await archiveOf(count, more), await temporaryFolder()];
    expect(await exported([path], out, { table, partition: 'none' })).toMatchObject({
      rejects: 0,
      problems: 0,
    });
    const columns = ['_event_id', '_event_type', '_received_at::VARCHAR', '_loaded_at::VARCHAR'];
    if (table === 'events') columns.push('id', 'event_type', 'received_at::VARCHAR');
    const expected = RECORDS.map(({ id, type, time }) => {
      const [texts, at] = [
        [id, type].map((text) => JSON.parse(text) as string),
        time && `2026-01-02 ${time}+00`,
      ];
      return table === 'events' ? [...texts, at, at, ...texts, at] : [...texts, at, at];
    });
    const sql = await duckdb();
    for (const name of table === 'events' ? ['events'] : ['meals', 'meal_items'])
      expect(await sql(`SELECT ${columns.join(', ')} FROM read_parquet('${out}/${name}/*.parquet')`)).toEqual(
        Array.from({ length: count }, (_row, n) => expected[n % expected.length]),
      );
  },
);
