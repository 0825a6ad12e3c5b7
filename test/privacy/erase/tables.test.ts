import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { tasksOf, type BackfillPlan } from '../../../src/history/backfill/plan.ts';
import type { ErasureResult } from '../../../src/core/erasure.ts';
import { WorkFolder } from '../../../src/lib/work-folder.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { eraseFrom, find, folderStore, secretOf, userId } from './support.ts';

const row = (user: number, more: object = {}): string =>
  `${JSON.stringify({ user_id: userId(user), note: secretOf(user), ...more })}\n`;

function erase(root: string, id = userId(1), by: 'user' | 'client_user' = 'user'): Promise<ErasureResult> {
  return eraseFrom(root, [folderStore(join(root, 'tables'))], { id, by });
}

const textOf = (root: string, name: string): string => readFileSync(join(root, 'tables', name), 'utf8');

async function tables(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const root = await temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, 'tables', name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
  }
  return root;
}

test('rows of tables, outcomes and rejects go; what merely names the user in another one’s row stays', async () => {
  const mention = row(2, { extra: { seen_with: userId(1) } });
  const root = await tables({
    'meals.ndjson': row(1) + mention + row(3),
    'meal_items.ndjson.gz': gzipSync(row(1) + row(1) + row(2)),
    '_rejects.ndjson': `{"user_id":"${userId(1)}","code":"not_json"}\n{"reason":"about \\"${userId(1)}\\""}\n`,
    'orders.ndjson': row(2),
  });
  const { receipts, left } = await erase(root, userId(1).toUpperCase());
  expect(left).toEqual([]);
  const counts = receipts[0]?.items.map(({ item, removed }) => [item, removed]);
  expect(counts).toEqual([
    ['_rejects.ndjson', 2],
    ['meal_items.ndjson.gz', 2],
    ['meals.ndjson', 1],
  ]);
  expect(textOf(root, 'meals.ndjson')).toBe(mention + row(3));
  expect(find([root], [secretOf(1)])).toEqual([]);
});

test('a client user id selects rows that have it, and no other', async () => {
  const id = 'customer "7" / é';
  const root = await tables({
    'events.ndjson': row(1, { client_user_id: id }) + row(2, { client_user_id: '7' }) + row(3, { note: id }),
  });
  expect(await erase(root, id, 'client_user')).toMatchObject({
    receipts: [{ records_removed: 1 }],
    left: [],
  });
  const kept = textOf(root, 'events.ndjson');
  expect(kept.split('\n').filter(Boolean)).toHaveLength(2);
});

test('a short id is not found inside a longer one', async () => {
  const root = await tables({ 'events.ndjson': '{"user_id":"17"}\n{"user_id":"7"}\n{"n":7,"m":"17"}\n' });
  await erase(root, '7');
  expect(textOf(root, 'events.ndjson')).toBe('{"user_id":"17"}\n{"n":7,"m":"17"}\n');
});

test('an unfinished backfill keeps the numbers of its other tasks, and passes over the user', async () => {
  const plan: BackfillPlan = {
    users: [1, 2, 3].map(userId),
    providers: [],
    since: '2026-01-01',
    until: '2026-01-02',
    windowDays: 0,
  };
  const without = { [`${userId(2)} made_up`]: 'x', [`${userId(3)} made_up`]: 'y' };
  const root = await tables({
    '_backfill/state.json': JSON.stringify({ plan, triggered: {}, without, followed: true }),
  });
  const { receipts } = await erase(root, userId(2));
  expect(receipts).toMatchObject([{ records_removed: 1 }]);
  const state = JSON.parse(textOf(root, '_backfill/state.json')) as {
    plan: BackfillPlan;
    without: object;
  };
  expect(Array.from(tasksOf(state.plan), ({ index, user }) => [index, user])).toEqual([
    [0, userId(1)],
    [2, userId(3)],
  ]);
  expect(state).toMatchObject({ plan: { ...plan, users: expect.anything() as unknown }, followed: true });
  expect(Object.keys(state.without)).toEqual([`${userId(3)} made_up`]);
  expect(find([root], [userId(2)])).toEqual([]);
});

test('a folder that a command writes is left as it is, and taken on once that has ended', async () => {
  const root = await tables({ 'meals.ndjson': row(1) + row(2) });
  const path = join(root, 'tables', 'meals.ndjson');
  const backfill = await WorkFolder.take(join(root, 'tables'));
  const { receipts, left } = await erase(root);
  expect([receipts, left.map(({ reason }) => reason)]).toEqual([
    [],
    [expect.stringContaining('is being written by')],
  ]);
  expect(readFileSync(path, 'utf8')).toBe(row(1) + row(2));
  backfill.release();
  expect(await erase(root)).toMatchObject({ receipts: [{ records_removed: 1 }], left: [] });
  expect(readFileSync(path, 'utf8')).toBe(row(2));
});

test('rows that are being written are left, and taken out once their writer is gone', async () => {
  const root = await tables({ 'meals.ndjson.part': row(1) + row(2) });
  const path = join(root, 'tables', 'meals.ndjson.part');
  expect(await erase(root)).toMatchObject({ receipts: [], left: [{ item: 'meals.ndjson.part' }] });
  expect(readFileSync(path, 'utf8')).toBe(row(1) + row(2));
  const hourAgo = new Date(Date.now() - 3_600_000);
  utimesSync(path, hourAgo, hourAgo);
  expect(await erase(root)).toMatchObject({ receipts: [{ records_removed: 1 }], left: [] });
  expect(readFileSync(path, 'utf8')).toBe(row(2));
});

test('what a backfill had not finished when it was killed holds up nothing', async () => {
  const state = JSON.stringify({ plan: { users: [1, 2].map(userId) } });
  const root = await tables({
    'meals.ndjson.part': row(1) + row(2),
    '_backfill.ndjson.tmp': row(1),
    '_backfill/state.json': state,
    '_backfill/state.json.tmp': state.slice(0, -10),
    '_backfill/run/0/0/meals.ndjson.part': row(1),
  });
  expect(await erase(root)).toMatchObject({ left: [], receipts: [expect.anything()] });
  expect(find([root], [userId(1)])).toEqual([]);
  expect(textOf(root, 'meals.ndjson.part')).toBe(row(2));
});

test('what cannot be rewritten is named, and the request waits; what cannot be searched is on the receipt', async () => {
  const root = await tables({
    'notes.csv': `id,note\n${userId(1)},x\n`,
    'other.csv': 'id,note\n',
    'meals.parquet': 'PAR1',
    'meals.ndjson': row(1),
  });
  const first = await erase(root);
  expect(first.receipts).toEqual([]);
  expect(first.left.map(({ item, requests }) => [item, requests.length])).toEqual([
    ['meals.parquet', 0],
    ['notes.csv', 1],
  ]);
  writeFileSync(join(root, 'tables', 'notes.csv'), 'id,note\n');
  const second = await erase(root);
  expect(second.receipts).toMatchObject([{ records_removed: 1, not_searched: ['meals.parquet'] }]);
});

test('tables of people whose rows do not say whose they are stand on the receipt', async () => {
  const root = await tables({
    'insurance.ndjson': '{"member_id":"made-up","insured_first_name":"Made"}\n',
    'parsing_job_results/dt=2026-11-21/part-000000.ndjson.gz': gzipSync('{"job_id":"j","value":1}\n'),
    'markers.ndjson': '{"id":1}\n',
    'meals.ndjson': row(1),
  });
  const { receipts, left } = await erase(root);
  expect(left.map(({ requests }) => requests)).toEqual([[], []]);
  expect(receipts).toMatchObject([
    {
      records_removed: 1,
      not_searched: ['insurance.ndjson', 'parsing_job_results/dt=2026-11-21/part-000000.ndjson.gz'],
    },
  ]);
});

test('rows of insurance and parsing jobs that say whose they are go like others', async () => {
  const root = await tables({
    'insurance.ndjson': row(1) + row(2),
    'parsing_jobs.ndjson': row(2),
    'parsing_job_results/dt=2026-11-21/part-000000.ndjson.gz': gzipSync(row(1) + row(2)),
  });
  const { receipts, left } = await erase(root);
  expect(left).toEqual([]);
  expect(receipts).toMatchObject([{ records_removed: 2, not_searched: [] }]);
  expect(textOf(root, 'insurance.ndjson')).toBe(row(2));
});

test('a file that is damaged is named, and the others are erased all the same', async () => {
  const broken = gzipSync(row(1).repeat(1000));
  const root = await tables({
    'meals.ndjson.gz': broken.subarray(0, broken.length - 20),
    'items.ndjson': row(1) + row(2),
  });
  const { receipts, left } = await erase(root);
  expect(receipts).toEqual([]);
  expect(left).toMatchObject([{ item: 'meals.ndjson.gz' }]);
  expect(textOf(root, 'items.ndjson')).toBe(row(2));
});
