import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { fileOf } from '../warehouse/infer-support.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

test('part of an archive is given out as Parquet, noted before, and only where bodies may be shown', async () => {
  const folder = await temporaryFolder();
  const definitions = join(folder, 'tables.yaml');
  const settings = {
    console: { payloads: true },
    tables: [definitions],
    erasure: { path: join(folder, 'erasure') },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      columns: { type: 'files', path: join(folder, 'columns'), compress: 'zstd' },
      sealed: {
        type: 'files',
        path: join(folder, 'sealed'),
        encrypt: { masterKey: '${MADE_UP_KEY}', store: join(folder, 'keys') },
      },
      out: { type: 'stdout' },
    },
    routes: [{ match: '*', to: ['archive', 'columns', 'sealed'] }],
  };
  const config = writeConfig(folder, settings);
  const learned = fileOf([{ pace: 1, at: { place: 'made up' } }]);
  writeFileSync(definitions, learned);
  const receiver = await ReceiverProcess.start(config, { env: { MADE_UP_KEY: MASTER_KEY } });
  const ask = async (path: string, body?: object): Promise<{ status: number; body: Buffer }> => {
    const headers = { ...receiver.authorization, 'content-type': 'application/json' };
    const options = body === undefined ? {} : { method: 'POST' as const, body: JSON.stringify(body) };
    const url = `${receiver.adminUrl}/api/console/sql${path}`;
    const answer = await request(url, { headers, ...options });
    return { status: answer.statusCode, body: Buffer.from(await answer.body.arrayBuffer()) };
  };
  const audited = (): string => readFileSync(join(folder, 'journal/audit.jsonl'), 'utf8');
  const idsIn = async (order: object): Promise<unknown[]> => {
    const { status, body } = await ask('/data', { sink: 'archive', table: 'events', ...order });
    expect(status).toBe(200);
    const rows = await parquetReadObjects({ file: new Uint8Array(body).buffer });
    return rows.map(({ id }) => id);
  };
  for (const n of [1, 2, 3, 4]) {
    const type = n > 3 ? 'labtest.order.updated' : 'daily.data.meal.created';
    const event = { ...(JSON.parse(madeUpEvent(n, type).body.toString()) as object), user_id: userId(n) };
    const body = Buffer.from(JSON.stringify(event));
    expect((await postSigned(receiver.url, body, { id: `msg_${n}` })).status).toBe(202);
  }
  const walk = { ...(JSON.parse(madeUpEvent(5).body.toString()) as object), event_type: 'raw.thing.created' };
  const ofNoTable = Buffer.from(JSON.stringify({ ...walk, data: { pace: 7, at: { place: 'made up' } } }));
  expect((await postSigned(receiver.url, ofNoTable, { id: 'msg_5' })).status).toBe(202);
  await receiver.drained();

  expect(JSON.parse((await ask('')).body.toString())).toMatchObject({
    archives: [
      { sink: 'archive', sealed: false },
      { sink: 'columns', sealed: false },
      { sink: 'sealed', sealed: true },
    ],
  });
  const { tables } = JSON.parse((await ask('')).body.toString()) as { tables: string[] };
  expect(tables).toEqual(expect.arrayContaining(['events', 'meals', 'raw_thing']));
  const own = await ask('/data', { sink: 'archive', table: 'raw_thing' });
  expect(await parquetReadObjects({ file: new Uint8Array(own.body).buffer })).toMatchObject([
    { _event_id: 'msg_5', pace: 7n, at_place: 'made up' },
  ]);
  expect(await idsIn({})).toEqual(['msg_1', 'msg_2', 'msg_3', 'msg_4', 'msg_5']);
  expect(audited()).toContain(
    '"who":"owner","action":"show","what":"archives","ids":["archive","events",".."]',
  );
  expect(await idsIn({ types: ['labtest.'] })).toEqual(['msg_4']);
  expect((await millrace(['flush', '--config', config])).code).toBe(0);
  const all = ['msg_1', 'msg_2', 'msg_3', 'msg_4', 'msg_5'];
  expect(new Set(await idsIn({ sink: 'columns' }))).toEqual(new Set(all));
  const cut = await ask('/data', { sink: 'archive', table: 'meals', limit: 2 });
  const { key_value_metadata: notes, num_rows: rows } = parquetMetadata(new Uint8Array(cut.body).buffer);
  expect([rows, JSON.parse(notes?.[0]?.value ?? '')]).toEqual([
    2n,
    { records: 2, cut: true, problems: 0, rejects: 0 },
  ]);
  expect(
    (await ask('/data', { sink: 'archive', table: 'events', until: '2020-01-01T00:00:00Z' })).status,
  ).toBe(204);

  for (const wrong of [
    { sink: 'nowhere', table: 'events' },
    { sink: 'out', table: 'events' },
    { sink: 'sealed', table: 'events' },
    { sink: 'archive', table: 'users; --' },
    { sink: 'archive', table: 'events', limit: 0 },
    { sink: 'archive', table: 'events', since: 'yesterday' },
    { sink: 'archive', table: 'events', path: '/etc' },
    {},
  ])
    expect([wrong, (await ask('/data', wrong)).status]).toEqual([wrong, 400]);
  expect((await ask('/data', { sink: 'sealed', table: 'events' })).body.toString()).toMatch(
    /sealed is sealed/,
  );

  const query = `SELECT * FROM events WHERE user_id = '${userId(1)}'`;
  expect((await ask('/queries', { query })).status).toBe(200);
  expect((await ask('/queries', { query: '' })).status).toBe(400);
  expect(audited()).toMatch(
    /"action":"query","what":"archives","ids":\["sha256 [0-9a-f]{64}","\d+ characters"\]/,
  );
  expect(audited()).not.toContain(userId(1));

  expect((await millrace(['erase', userId(1), '--now', '--config', config])).code).toBe(0);
  expect(await idsIn({})).toEqual(['msg_2', 'msg_3', 'msg_4', 'msg_5']);

  writeFileSync(definitions, 'tables: 7\n');
  const broken = await ask('');
  expect([broken.status, broken.body.toString()]).toEqual([500, expect.stringContaining('tables.yaml')]);
  writeFileSync(definitions, learned);

  writeConfig(folder, { ...settings, console: { payloads: false } });
  expect((await ask('/../../reload', {})).status).toBe(200);
  expect((await ask('/data', { sink: 'archive', table: 'events' })).status).toBe(403);
  expect((await ask('/queries', { query })).status).toBe(403);
  const anyone = await request(`${receiver.adminUrl}/api/console/sql`);
  await anyone.body.dump();
  expect(anyone.statusCode).toBe(401);
});
