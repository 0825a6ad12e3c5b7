import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { DAY, MINUTE, SECOND } from '../support/manual-clock.ts';
import { Bench, pdf } from './support.ts';

const BULK = 'POST /v2/link/bulk_trigger_historical_pull';
const MEALS = 'GET /v2/summary/meal/{user}?start_date=';
const ORDER_SET = 'POST /v3/lab_tests/list_order_set_markers';
const AREA = 'GET /v3/order/area/info?zip_code=12345';
const SLOTS = 'POST /v3/order/phlebotomy/appointment/availability?start_date=';
const TRIGGER = { user_ids: ['{user}'], provider: 'made_up' };
const ORDER = { user_id: '{user}', lab_test_id: '{test}' };

test.each<[number, string, object?]>([
  [422, `${MEALS}yesterday`],
  [422, `${MEALS}2026-02-30`],
  [422, `${MEALS}2026-02-30T10:00:00Z`],
  [422, `${MEALS}2025-02-29`],
  [422, 'GET /v2/summary/meal/unknown?start_date=2026-01-01'],
  [422, `${ORDER_SET}?page=0`],
  [422, `${ORDER_SET}?size=0`],
  [422, `${ORDER_SET}?size=101`],
  [422, `${ORDER_SET}?size=many`],
  [200, `${ORDER_SET}?size=100`, { lab_test_ids: ['{test}', '{test1}'] }],
  [404, ORDER_SET, { lab_test_ids: ['nothing'] }],
  [422, 'GET /v3/lab_test/lab_account?status=closed'],
  [422, BULK, { ...TRIGGER, provider: 'unknown' }],
  [422, BULK, { ...TRIGGER, user_ids: ['me'] }],
  [422, BULK, { provider: 'made_up' }],
  [202, `${BULK}?team_id=infer_from_context`, TRIGGER],
  [202, `${BULK}?team_id={team}`, TRIGGER],
  [403, `${BULK}?team_id=other`, TRIGGER],
  [422, 'GET /v2/link/bulk_op?page_size=51'],
  [422, 'GET /v2/link/bulk_op?next_cursor=nonsense'],
  [422, 'GET /v3/order/area/info?zip_code=1234'],
  [422, 'GET /v3/order/area/info?zip_code=12345-6789'],
  [422, `${AREA}&radius=30`],
  [422, 'GET /v3/order/area/info'],
  [404, 'GET /v2/user/{user7}/insurance/latest'],
  [422, 'DELETE /v2/user/me'],
  [422, `${SLOTS}soon`],
  // Another lab's account; one that is pending may be named by an import only, one that is suspended by neither.
  [400, 'POST /v3/order/create', { ...ORDER, lab_account_id: '{account1}' }],
  [400, 'POST /v3/order/create', { ...ORDER, lab_account_id: '{account4}' }],
  [200, 'POST /v3/order/import', { ...ORDER, lab_account_id: '{account4}' }],
  [400, 'POST /v3/order/import', { ...ORDER, lab_test_id: '{test1}', lab_account_id: '{account5}' }],
  [200, 'POST /v3/order/create', { ...ORDER, clinical_notes: '💧'.repeat(1000) }],
  [422, 'POST /v3/order/create', { ...ORDER, clinical_notes: 'x'.repeat(1001) }],
])('%i: %s', async (status, request, body) => {
  const bench = await Bench.start();
  expect((await bench.ask(request, body)).status).toBe(status);
});

describe('GET /v2/summary/meal/{user_id}', () => {
  test.each([
    // A bare day is 00:00:00 as a start and 23:59:59 as an end.
    ['2026-01-02&end_date=2026-01-02', 3],
    ['2026-01-02T12:00:00Z&end_date=2026-01-02', 2],
    ['2026-01-02T12:00:00%2B03:00&end_date=2026-01-02T09:30:00', 1],
    ['2026-01-01', 30],
    ['2027-01-01', 0],
    ['2026-01-01&provider=made_up', 15],
    ['2026-01-01&provider=made_up_8', 0],
  ])('from %s: %i meals', async (query, count) => {
    const bench = await Bench.start({ providers: ['made_up', 'made_up_7'] });
    const { status, json } = await bench.ask(MEALS + query);
    expect([status, json['meals']]).toEqual([200, expect.objectContaining({ length: count })]);
  });

  test('a bound that is none is named', async () => {
    const bench = await Bench.start();
    const { json } = await bench.ask(`${MEALS}yesterday`);
    expect(json['detail']).toEqual([expect.objectContaining({ loc: ['query', 'start_date'] })]);
  });

  test('with data after a pull, there is nothing before it', async () => {
    const bench = await Bench.start({ data: 'after_pull', providers: ['made_up_bulk_a'] });
    expect((await bench.ask(`${MEALS}2026-01-01`)).json).toEqual({ meals: [] });
    await bench.trigger('made_up_bulk_a', 1);
    bench.clock.advance(MINUTE);
    expect((await bench.ask(`${MEALS}2026-01-01`)).json['meals']).toHaveLength(30);
  });
});

test('order set markers: of tests and add-ons, page by page within the bounds', async () => {
  const bench = await Bench.start();
  const body = { lab_test_ids: ['{test}', '{test1}'], add_on: { provider_ids: ['M0240'] } };
  const first = await bench.ask(ORDER_SET, body);
  expect(first.json).toMatchObject({ total: 61, page: 1, size: 50, markers: { length: 50 } });
  expect((await bench.ask(`${ORDER_SET}?page=2&size=50`, body)).json['markers']).toHaveLength(11);
  expect((await bench.ask(ORDER_SET, {})).json['total']).toBe(0);
});

test('lab accounts: by id and by status', async () => {
  const bench = await Bench.start();
  const { id } = bench.state.labs.accounts[4]!;
  const one = 'GET /v3/lab_test/lab_account?lab_account_id={account4}';
  expect((await bench.ask(one)).json['data']).toMatchObject([{ id, status: 'pending' }]);
  expect((await bench.ask(`${one}&status=active`)).json['data']).toEqual([]);
});

describe('POST /v2/link/bulk_trigger_historical_pull', () => {
  test('202 with a detail; progress is read through the bulk ops', async () => {
    const bench = await Bench.start();
    const { status, json } = await bench.trigger('made_up');
    expect([status, typeof json['detail']]).toEqual([202, 'string']);
    const progress = async (): Promise<unknown> => (await bench.get('/v2/link/bulk_op')).json['data'];
    expect(await progress()).toMatchObject([
      { status: 'in_progress', pending: 20, processed: 0, ended_at: null },
    ]);
    bench.clock.advance(0);
    expect(await progress()).toMatchObject([{ pending: 12, processed: 8 }]);
    bench.clock.advance(2 * MINUTE);
    expect(await progress()).toMatchObject([
      { type: 'link_bulk_historical_trigger', status: 'success', pending: 0 },
    ]);
  });

  test.each([
    [8, 200],
    [9, 202],
  ])('wait_for_completion of %i users: %i, as they take up to 20 seconds', async (count, status) => {
    const bench = await Bench.start();
    const user_ids = Array.from({ length: count }, (_, n) => bench.user(n));
    const answer = bench.ask(BULK, { user_ids, provider: 'made_up', wait_for_completion: true });
    await until('the op', () => bench.state.bulkOps.list(bench.sandbox.teamId).length > 0);
    await bench.get('/v2/user');
    bench.clock.advance(20 * SECOND);
    expect((await answer).status).toBe(status);
  });

  test('bulk ops are paged by a cursor, newest first', async () => {
    const bench = await Bench.start();
    for (let n = 0; n < 5; n += 1) await bench.trigger(`made_up_${7 + n}`, 1);
    const first = await bench.get('/v2/link/bulk_op?page_size=3');
    await bench.trigger('made_up', 1);
    const cursor = String(first.json['next_cursor']);
    const second = await bench.get(`/v2/link/bulk_op?page_size=3&next_cursor=${cursor}`);
    const providers = [first, second].flatMap(({ json }) => json['data'] as { provider: string }[]);
    expect(providers.map(({ provider }) => provider)).toEqual([11, 10, 9, 8, 7].map((n) => `made_up_${n}`));
    expect(second.json['next_cursor']).toBeNull();
  });
});

test.each([
  ['', ['made_up_lab_1', 'made_up_lab_2', 'made_up_lab_3', 'made_up_lab_4']],
  ['&labs=made_up_lab_2&labs=made_up_lab_3', ['made_up_lab_2', 'made_up_lab_3']],
  ['&lab=made_up_lab_4', ['made_up_lab_4']],
  ['&lab_account_id={account}', ['made_up_lab_1']],
])('area info%s has the labs %j', async (query, labs) => {
  const bench = await Bench.start();
  const { status, json, headers } = await bench.ask(AREA + query);
  expect([status, Object.keys(json['central_labs'] as object)]).toEqual([200, labs]);
  expect(Object.values(json['central_labs'] as object)[0]).toMatchObject({
    patient_service_centers: { radius: '25' },
  });
  expect(headers.get('deprecation')).toBe(query.includes('lab=') ? 'true' : null);
});

describe('Operations shown only through their changes', () => {
  test('order create: the account limits the lab, notes are joined, INCORRECT_LAB finds a fresh account', async () => {
    const bench = await Bench.start();
    const { accounts } = bench.state.labs;
    const place = async (fields: object) => (await bench.order(fields)).json['order'];
    expect(await place({ clinical_notes: 'Fasting.' })).toMatchObject({
      lab_account_id: accounts[0]!.id,
      clinical_notes: 'Made-up default note of the account.\nFasting.',
    });
    // Not the account that was wrong.
    expect(await place({ update_reason: 'INCORRECT_LAB' })).toMatchObject({
      lab_account_id: accounts[6]!.id,
      origin: 'recreation',
    });
    expect(await place({ update_reason: 'CLERICAL_ERROR' })).toMatchObject({
      lab_account_id: accounts[6]!.id,
    });
    const named = { lab_account_id: '{account6}', update_reason: 'INCORRECT_LAB' };
    expect(await place(named)).toMatchObject({ lab_account_id: accounts[6]!.id });
  });

  test('order idempotency: one key, one order', async () => {
    const bench = await Bench.start();
    const body = { user_id: bench.user(), lab_test_id: bench.state.labs.tests[0]!.id };
    const headers = { 'x-service-api-key': bench.sandbox.apiKey, 'x-idempotency-key': 'made-up' };
    const place = (fields: object) => bench.call('POST', '/v3/order/create', { ...body, ...fields }, headers);
    const [first, second] = [await place({}), await place({})];
    expect(second.json['order']).toEqual(first.json['order']);
    expect((await place({ clinical_notes: 'another' })).status).toBe(409);
    expect((await bench.get('/orders')).json['total']).toBe(1);
  });

  test('markers by lab_slug, orders by interpretation', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get('/v3/lab_tests/markers?lab_slug=made_up_lab_2');
    const labs = (json['markers'] as { lab_id: number }[]).map(({ lab_id }) => lab_id);
    expect(new Set(labs)).toEqual(new Set([2]));
    for (let n = 0; n < 20; n += 1) await bench.order({ user_id: `{user${n}}` });
    const total = async (one: string): Promise<number> =>
      Number((await bench.get(`/orders?interpretation=${one}`)).json['total']);
    expect(await total('critical')).toBe(0);
    bench.clock.advance(30 * DAY);
    const totals = [await total('normal'), await total('abnormal'), await total('critical')];
    expect(totals.reduce((sum, one) => sum + one, 0)).toBe(20);
    expect(totals).not.toContain(0);
  });

  test('appointment availability: always fourteen days', async () => {
    const bench = await Bench.start();
    const { json } = await bench.ask(`${SLOTS}2026-12-25`);
    const days = (json['slots'] as { date: string }[]).map(({ date }) => date);
    expect([days.length, days[0], days[13]]).toEqual([14, '2026-12-25', '2027-01-07']);
  });

  test.each([
    [200, 'ten megabytes', { file: pdf(10_000_000) }],
    [413, 'a byte more', { file: pdf(10_000_001) }],
    [200, 'a JPEG', { file: new Blob([Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)]) }],
    [200, 'a PNG', { file: new Blob([Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)]) }],
    [415, 'a GIF', { file: new Blob(['GIF89a']) }],
    [422, 'no file', { file: 'not a file' }],
    [404, 'of an unknown user', { user_id: '00000000-0000-4000-8000-000000000000' }],
  ])('parsing job upload, %i: %s', async (status, _, fields) => {
    const bench = await Bench.start();
    expect((await bench.upload(fields)).status).toBe(status);
  });
});
