import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';

interface Row {
  readonly id?: string;
  readonly order_id?: string;
  readonly status?: string;
  readonly extra?: unknown;
}

const ORDERS = Array.from({ length: 4 }, (_, n) => ({
  id: `order-${n}`,
  user_id: 'user-1',
  updated_at: '2026-01-05T10:00:00Z',
  status: 'received',
  events: [
    { id: 1, status: 'received.testkit.ordered', created_at: '2026-01-05T09:00:00Z' },
    { id: 2, status: 'completed.testkit.completed', created_at: '2026-01-05T10:00:00Z' },
  ],
}));

function rowsIn(path: string): Row[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Row);
}

/** The rows of each file that `millrace ndjson` makes of a document. */
async function shaped(document: string, table: string, ...more: readonly string[]) {
  const folder = await temporaryFolder();
  const file = join(folder, 'answer.json');
  writeFileSync(file, document);
  const { code, stdout } = await millrace([
    'ndjson',
    file,
    '--table',
    table,
    '--out',
    join(folder, 'out'),
    '--json',
    ...more,
  ]);
  const { files } = JSON.parse(stdout) as { files: string[] };
  return { code, files: files.map(rowsIn) };
}

const framed = ORDERS.map((order) => ({ order, status: 'success', message: 'order created' }));

test.each([
  ['the list of orders', JSON.stringify({ orders: ORDERS, total: 4, page: 1, size: 50 })],
  ['pages of the list', ORDERS.map((order) => JSON.stringify({ orders: [order], total: 4 })).join('\n')],
  ['an answer to each new order, a line each', framed.map((one) => JSON.stringify(one)).join('\n')],
  ['a list of such answers', JSON.stringify(framed)],
  ['such answers under a name', JSON.stringify({ orders: framed })],
  ['such answers over several lines', framed.map((one) => JSON.stringify(one, null, 2)).join('\n')],
])('%s is a row for each order', async (_, document) => {
  const { code, files } = await shaped(document, 'orders');
  const [orders = [], events = []] = files;
  expect(code).toBe(0);
  expect(orders.map(({ id }) => id)).toEqual(ORDERS.map(({ id }) => id));
  expect(orders.filter(({ status, extra }) => status !== 'received' || extra !== undefined)).toEqual([]);
  expect(events.map(({ order_id }) => order_id)).toEqual(ORDERS.flatMap(({ id }) => [id, id]));
});

test('an order with a member of that name stays itself, and a frame without an order is rejected', async () => {
  const [first, second] = ORDERS.map((order) => ({ ...order, order: { id: 'inner' } }));
  const { code, files } = await shaped(JSON.stringify([first, { order: 7 }, { order: second }]), 'orders');
  expect(code).toBe(3);
  expect(files[0]?.map(({ id }) => id)).toEqual(['order-0', 'order-1']);
  expect(files.at(-1)).toMatchObject([{ code: 'no_identity', byte_length: 11 }]);
});

test('the lists of history have the names that the service gives them', async () => {
  const days = ['2026-01-01', '2026-01-02'].map((calendar_date) => ({ id: calendar_date, calendar_date }));
  for (const [table, list] of [
    ['electrocardiograms', 'electrocardiogram'],
    ['sleep_cycles', 'sleep_cycle'],
    ['menstrual_cycles', 'menstrual_cycle'],
    ['workouts', 'workouts'],
    ['meals', 'meals'],
  ] as const) {
    const { code, files } = await shaped(JSON.stringify({ [list]: days }), table, '--set', 'user_id=user-1');
    expect([table, code, files[0]?.map(({ id }) => id)]).toEqual([table, 0, days.map(({ id }) => id)]);
  }
  const data = [60, 61].map((value, n) => ({ timestamp: `2026-01-01T00:0${n}:00Z`, value }));
  const groups = { made_up: [{ source: { provider: 'made_up' }, data }] };
  const set = ['--set', 'resource=heartrate', '--set', 'user_id=user-1'];
  const { files } = await shaped(JSON.stringify({ groups, next_cursor: null }), 'timeseries', ...set);
  expect(files[0]).toMatchObject(data.map((sample) => ({ ...sample, source_provider: 'made_up' })));
});
