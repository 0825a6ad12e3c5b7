import { describe, expect, test } from 'vitest';
import { Bench, formOf, pdf } from './support.ts';
import { MINUTE, SECOND } from './manual-clock.ts';
import { until } from '../support/until.ts';

const BULK = '/v2/link/bulk_trigger_historical_pull';

describe('GET /v2/summary/meal/{user_id}', () => {
  test('a bare day is 00:00:00 as a start and 23:59:59 as an end; provider narrows', async () => {
    const bench = await Bench.start({ providers: ['made_up', 'made_up_7'] });
    const count = async (query: string): Promise<number> => {
      const { status, json } = await bench.get(`/v2/summary/meal/${bench.user()}?${query}`);
      expect(status).toBe(200);
      return (json['meals'] as unknown[]).length;
    };
    expect(await count('start_date=2026-01-02&end_date=2026-01-02')).toBe(3);
    expect(await count('start_date=2026-01-02T12:00:00Z&end_date=2026-01-02')).toBe(2);
    expect(await count('start_date=2026-01-02T12:00:00%2B03:00&end_date=2026-01-02T09:30:00')).toBe(1);
    expect(await count('start_date=2026-01-01')).toBe(30);
    expect(await count('start_date=2027-01-01')).toBe(0);
    expect(await count('start_date=2026-01-01&provider=made_up')).toBe(15);
    expect(await count('start_date=2026-01-01&provider=made_up_8')).toBe(0);
    const bad = await bench.get(`/v2/summary/meal/${bench.user()}?start_date=yesterday`);
    expect([bad.status, bad.json['detail']]).toEqual([
      422,
      [expect.objectContaining({ loc: ['query', 'start_date'] })],
    ]);
    expect((await bench.get('/v2/summary/meal/nobody?start_date=2026-01-01')).status).toBe(422);
    for (const day of ['2026-02-30', '2026-02-30T10:00:00Z', '2025-02-29'])
      expect((await bench.get(`/v2/summary/meal/${bench.user()}?start_date=${day}`)).status).toBe(422);
  });

  test('with data after a pull, there is nothing before it', async () => {
    const bench = await Bench.start({ data: 'after_pull', providers: ['made_up_bulk_a'] });
    const path = `/v2/summary/meal/${bench.user()}?start_date=2026-01-01`;
    expect((await bench.get(path)).json).toEqual({ meals: [] });
    await bench.post(BULK, { user_ids: [bench.user()], provider: 'made_up_bulk_a' });
    bench.clock.advance(MINUTE);
    expect((await bench.get(path)).json['meals']).toHaveLength(30);
  });
});

describe('POST /v3/lab_tests/list_order_set_markers', () => {
  test('markers of tests and add-ons, page by page within the bounds', async () => {
    const bench = await Bench.start();
    const [one, other] = bench.sandbox.state.labs.tests;
    const body = { lab_test_ids: [one!.id, other!.id], add_on: { provider_ids: ['M0240'] } };
    const path = '/v3/lab_tests/list_order_set_markers';
    const first = await bench.post(path, body);
    expect(first.json).toMatchObject({ total: 61, page: 1, size: 50 });
    expect(first.json['markers']).toHaveLength(50);
    expect((await bench.post(`${path}?page=2&size=50`, body)).json['markers']).toHaveLength(11);
    for (const query of ['page=0', 'size=0', 'size=101', 'size=many']) {
      expect((await bench.post(`${path}?${query}`, body)).status).toBe(422);
    }
    expect((await bench.post(`${path}?size=100`, body)).status).toBe(200);
    expect((await bench.post(path, { lab_test_ids: ['nothing'] })).status).toBe(404);
    expect((await bench.post(path, {})).json['total']).toBe(0);
  });
});

describe('GET /v3/lab_test/lab_account', () => {
  test('by id and by status', async () => {
    const bench = await Bench.start();
    const { id } = bench.sandbox.state.labs.accounts[4]!;
    const one = await bench.get(`/v3/lab_test/lab_account?lab_account_id=${id}`);
    expect(one.json['data']).toMatchObject([{ id, status: 'pending' }]);
    expect(
      (await bench.get(`/v3/lab_test/lab_account?lab_account_id=${id}&status=active`)).json['data'],
    ).toEqual([]);
    expect((await bench.get('/v3/lab_test/lab_account?status=closed')).status).toBe(422);
  });
});

describe('POST /v2/link/bulk_trigger_historical_pull', () => {
  test('202 with a detail; progress is read through the bulk ops', async () => {
    const bench = await Bench.start();
    const ids = Array.from({ length: 20 }, (_, n) => bench.user(n));
    const { status, json } = await bench.post(BULK, { user_ids: ids, provider: 'made_up' });
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

  test('wait_for_completion: 200 within 20 seconds, else 202', async () => {
    const bench = await Bench.start();
    const waiting = async (count: number): Promise<number> => {
      const before = bench.sandbox.state.bulkOps.list(bench.sandbox.teamId).length;
      const user_ids = Array.from({ length: count }, (_, n) => bench.user(n));
      const answer = bench.post(BULK, { user_ids, provider: 'made_up', wait_for_completion: true });
      await until('the op', () => bench.sandbox.state.bulkOps.list(bench.sandbox.teamId).length > before);
      await bench.get('/v2/user');
      bench.clock.advance(20 * SECOND);
      return (await answer).status;
    };
    expect(await waiting(8)).toBe(200);
    bench.clock.advance(MINUTE);
    expect(await waiting(9)).toBe(202);
  });

  test('inputs: a known provider, UUIDs, the own team', async () => {
    const bench = await Bench.start();
    const good = { user_ids: [bench.user()], provider: 'made_up' };
    expect((await bench.post(BULK, { ...good, provider: 'nobody' })).status).toBe(422);
    expect((await bench.post(BULK, { ...good, user_ids: ['me'] })).status).toBe(422);
    expect((await bench.post(BULK, { provider: 'made_up' })).status).toBe(422);
    expect((await bench.post(`${BULK}?team_id=infer_from_context`, good)).status).toBe(202);
    expect((await bench.post(`${BULK}?team_id=${bench.sandbox.teamId}`, good)).status).toBe(202);
    expect((await bench.post(`${BULK}?team_id=other`, good)).status).toBe(403);
  });

  test('bulk ops are paged by a cursor, newest first', async () => {
    const bench = await Bench.start();
    for (let n = 0; n < 5; n += 1)
      await bench.post(BULK, { user_ids: [bench.user()], provider: `made_up_${7 + n}` });
    const first = await bench.get('/v2/link/bulk_op?page_size=3');
    await bench.post(BULK, { user_ids: [bench.user()], provider: 'made_up' });
    const cursor = String(first.json['next_cursor']);
    const second = await bench.get(`/v2/link/bulk_op?page_size=3&next_cursor=${cursor}`);
    const providers = [first, second].flatMap(({ json }) => json['data'] as { provider: string }[]);
    expect(providers.map(({ provider }) => provider)).toEqual([11, 10, 9, 8, 7].map((n) => `made_up_${n}`));
    expect(second.json['next_cursor']).toBeNull();
    expect((await bench.get('/v2/link/bulk_op?page_size=51')).status).toBe(422);
    expect((await bench.get('/v2/link/bulk_op?next_cursor=nonsense')).status).toBe(422);
  });
});

describe('GET /v3/order/area/info', () => {
  test('zip code, radius, labs, the deprecated lab, and a lab account', async () => {
    const bench = await Bench.start();
    const path = '/v3/order/area/info?zip_code=12345';
    const labsOf = async (query: string): Promise<string[]> => {
      const { status, json } = await bench.get(path + query);
      expect(status).toBe(200);
      return Object.keys(json['central_labs'] as object);
    };
    expect(await labsOf('')).toHaveLength(4);
    expect(await labsOf('&labs=made_up_lab_2&labs=made_up_lab_3')).toEqual([
      'made_up_lab_2',
      'made_up_lab_3',
    ]);
    expect(await labsOf('&lab=made_up_lab_4')).toEqual(['made_up_lab_4']);
    expect((await bench.get(`${path}&lab=made_up_lab_4`)).headers.get('deprecation')).toBe('true');
    expect(await labsOf(`&lab_account_id=${bench.sandbox.state.labs.accounts[0]!.id}`)).toEqual([
      'made_up_lab_1',
    ]);
    expect((await bench.get(path)).json['central_labs']).toMatchObject({
      made_up_lab_1: { patient_service_centers: { radius: '25' } },
    });
    for (const bad of ['zip_code=1234', 'zip_code=12345-6789', 'zip_code=12345&radius=30', '']) {
      expect((await bench.get(`/v3/order/area/info?${bad}`)).status).toBe(422);
    }
  });
});

describe('GET /v2/user/{user_id}/insurance/latest', () => {
  test('of a user, or 404 when there is none', async () => {
    const bench = await Bench.start();
    expect((await bench.get(`/v2/user/${bench.user(1)}/insurance/latest`)).json['relationship']).toBe(
      'Spouse',
    );
    expect((await bench.get(`/v2/user/${bench.user(7)}/insurance/latest`)).status).toBe(404);
  });
});

describe('DELETE /v2/user/{user_id}', () => {
  test('answers success', async () => {
    const bench = await Bench.start();
    const { status, json } = await bench.call('DELETE', `/v2/user/${bench.user()}`);
    expect([status, json]).toEqual([200, { success: true }]);
    expect((await bench.call('DELETE', '/v2/user/me')).status).toBe(422);
  });
});

describe('Operations shown only through their changes', () => {
  test('order create: the account limits the lab, notes are joined, INCORRECT_LAB finds a fresh account', async () => {
    const bench = await Bench.start();
    const { tests, accounts } = bench.sandbox.state.labs;
    const order = { user_id: bench.user(), lab_test_id: tests[0]!.id };
    const place = (fields: object = {}, path = 'create') =>
      bench.post(`/v3/order/${path}`, { ...order, ...fields });
    const first = await place({ clinical_notes: 'Fasting.' });
    expect(first.json['order']).toMatchObject({
      lab_account_id: accounts[0]!.id,
      clinical_notes: 'Made-up default note of the account.\nFasting.',
    });
    expect((await place({ lab_account_id: accounts[1]!.id })).status).toBe(400);
    // Neither the account that was wrong nor the one that is named again with the reason.
    const fresh = await place({ lab_account_id: accounts[1]!.id, update_reason: 'INCORRECT_LAB' });
    expect(fresh.json['order']).toMatchObject({ lab_account_id: accounts[6]!.id, origin: 'recreation' });
    const carried = await place({ update_reason: 'CLERICAL_ERROR' });
    expect(carried.json['order']).toMatchObject({ lab_account_id: accounts[6]!.id });
    const again = await place({ update_reason: 'INCORRECT_LAB' });
    expect(again.json['order']).toMatchObject({ lab_account_id: accounts[0]!.id });
    expect((await place({ clinical_notes: '💧'.repeat(1000) })).status).toBe(200);
    expect((await place({ clinical_notes: 'x'.repeat(1001) })).status).toBe(422);
    const pending = { lab_account_id: accounts[4]!.id };
    expect((await place(pending)).status).toBe(400);
    expect((await place(pending, 'import')).status).toBe(200);
    const suspended = { lab_test_id: tests[1]!.id, lab_account_id: accounts[5]!.id };
    expect((await place(suspended, 'import')).status).toBe(400);
  });

  test('order idempotency: one key, one order', async () => {
    const bench = await Bench.start();
    const body = { user_id: bench.user(), lab_test_id: bench.sandbox.state.labs.tests[0]!.id };
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
    expect(new Set((json['markers'] as { lab_id: number }[]).map(({ lab_id }) => lab_id))).toEqual(
      new Set([2]),
    );
    const lab_test_id = bench.sandbox.state.labs.tests[0]!.id;
    for (let n = 0; n < 20; n += 1)
      await bench.post('/v3/order/create', { user_id: bench.user(n), lab_test_id });
    expect((await bench.get('/orders?interpretation=critical')).json['total']).toBe(0);
    bench.clock.advance(30 * 24 * 60 * MINUTE);
    const totals = await Promise.all(
      ['normal', 'abnormal', 'critical'].map(
        async (one) => (await bench.get(`/orders?interpretation=${one}`)).json['total'],
      ),
    );
    expect(totals.reduce<number>((sum, total) => sum + Number(total), 0)).toBe(20);
    expect(totals.every((total) => Number(total) > 0)).toBe(true);
  });

  test('appointment availability: always fourteen days', async () => {
    const bench = await Bench.start();
    const path = '/v3/order/phlebotomy/appointment/availability';
    const { json } = await bench.post(`${path}?start_date=2026-12-25`);
    const days = (json['slots'] as { date: string }[]).map(({ date }) => date);
    expect([days.length, days[0], days[13]]).toEqual([14, '2026-12-25', '2027-01-07']);
    expect((await bench.post(`${path}?start_date=soon`)).status).toBe(422);
  });

  test('parsing job upload: three formats, ten megabytes, a user', async () => {
    const bench = await Bench.start();
    const upload = async (file: Blob | string, user = bench.user()): Promise<number> => {
      const { status } = await bench.call(
        'POST',
        '/lab_report/v1/parser/job',
        formOf({ file, user_id: user }),
      );
      return status;
    };
    expect(await upload(pdf(10_000_000))).toBe(200);
    expect(await upload(pdf(10_000_001))).toBe(413);
    expect(await upload(new Blob([Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)]))).toBe(200);
    expect(await upload(new Blob([Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)]))).toBe(200);
    expect(await upload(new Blob(['GIF89a']))).toBe(415);
    expect(await upload('not a file')).toBe(422);
    expect(await upload(pdf(), '00000000-0000-4000-8000-000000000000')).toBe(404);
  });
});
