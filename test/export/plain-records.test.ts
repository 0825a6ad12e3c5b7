import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { duckdb, exported } from './support.ts';

// Most records are read without making anything of what stands around the event. Nothing may tell for which that is not so.

const record = (n: number, changes: Readonly<Record<string, string>> = {}): string => {
  const members = {
    id: `"msg_${n}"`,
    source: '"webhooks"',
    received_at: `"2026-01-0${1 + (n % 2)}T03:04:05.006Z"`,
    event_type: n % 3 === 0 ? '"made.up"' : '"daily.data.meal.x"',
    team_id: n % 2 === 0 ? 'null' : '"team-1"',
    user_id: '"user-1"',
    client_user_id: 'null',
    headers: '{"webhook-id":"a","webhook-timestamp":"1"}',
    event: `{"n":${n},"text":"é \\" \\\\"}`,
    ...changes,
  };
  return `{${Object.entries(members)
    .map(([name, value]) => `"${name}":${value}`)
    .join(',')}}`;
};

/** Each beside what it is in the place of. */
const UNUSUAL: readonly (readonly [name: string, line: string | Buffer])[] = [
  ['no headers', record(1, { headers: '{}' })],
  ['a header with escapes', record(2, { headers: '{"a":"\\"\\\\","\\u0062":"é"}' })],
  ['a header that is no text', record(3, { headers: '{"a":"b","c":1}' })],
  ['headers that are none', record(4, { headers: '["a"]' })],
  ['headers with white space', record(5, { headers: '{ "a" : "b" }' })],
  ['no team', record(6).replace('"team_id":null,', '')],
  ['a team that is a number', record(7, { team_id: '7' })],
  ['white space', record(8).replaceAll(',"', ', "')],
  ['white space in the event', record(9, { event: '{ "a" : [ 1 ] }' })],
  ['another order', record(10).replace(/^\{("id":"[^"]*"),("source":"[^"]*")/, '{$2,$1')],
  ['one more member', record(11, { more: '1' })],
  ['a member twice', record(12).replace('"source"', '"id":"other","source"')],
  ['an id with escapes', record(13, { id: '"\\u0061\\"b"' })],
  ['an id that is not ASCII', record(14, { id: '"é"', event_type: '"é.é"' })],
  ['an id of nothing', record(15, { id: '""' })],
  ['a body beside the event', record(16, { event: '{"a":1}', body_base64: `"${btoa('{"a":1}')}"` })],
  ['another body beside the event', record(17, { event: '{"a":1}', body_base64: `"${btoa('{"a":2}')}"` })],
  ['a body that is no JSON', record(18, { event: 'null', body_base64: `"${btoa('no')}"` })],
  ['no event', record(19, { event: 'null' })],
  ['an event that is a text', record(20, { event: '"a"' })],
  ['a time that is none', record(21, { received_at: '"noon"' })],
  ['a time of another form', record(22, { received_at: '"2026-01-02t03:04+02:00"' })],
  ['not UTF-8', Buffer.from(record(23, { event: '{"a":"\xff"}' }), 'latin1')],
  ['cut short', record(24).slice(0, -1)],
  ['no record', '{"a":1}'],
  ['nothing', ''],
];

it('rows and problems are the same for every record, in both ways of reading it', async () => {
  const path = await temporaryFolder();
  const lines = UNUSUAL.flatMap(([, line], n) => [line, record(100 + n)]);
  const text = lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]);
  writeFileSync(join(path, 'a.ndjson'), Buffer.concat(text));
  const results = [];
  // Where all that is wanted has to be later than nothing, each record is looked at closely.
  for (const since of [null, '']) {
    const out = await temporaryFolder();
    const selection = { since, until: null, types: [], teams: [], users: [] };
    const { messages, records, rejects, problems, without_table } = await exported([path], out, {
      selection,
    });
    const sql = await duckdb();
    const rows = await sql(`SELECT * FROM read_parquet('${out}/events/*/*.parquet', hive_partitioning = true)
      ORDER BY dt, file_row_number`);
    results.push({ messages: messages.toSorted(), records, rejects, problems, without_table, rows });
  }
  const [plain, close] = results;
  expect(plain).toEqual(close);
  const wrong = (name: string): number => 2 * UNUSUAL.findIndex(([known]) => known === name) + 1;
  const named = plain?.messages.flatMap((one) => /ndjson:(\d+):/.exec(one)?.slice(1) ?? []).map(Number);
  expect(named?.toSorted((a, b) => a - b)).toEqual(
    [
      'a header that is no text',
      'headers that are none',
      'no team',
      'a team that is a number',
      'white space',
      'an id of nothing',
      'another body beside the event',
      'an event that is a text',
      'not UTF-8',
      'cut short',
      'no record',
      'nothing',
    ].map(wrong),
  );
});
