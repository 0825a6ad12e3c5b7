import { describe, expect, test } from 'vitest';
import { sandboxCommand } from '../../src/cli/sandbox/command.ts';
import { run } from '../cli/run.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { Bench } from './support.ts';

const PROVIDER = 'made_up_bulk_a';
const BULK = 'POST /v2/link/bulk_trigger_historical_pull';

describe('a pull', () => {
  const rangeOf = async (bench: Bench): Promise<unknown> => {
    await bench.trigger(PROVIDER, 1);
    bench.clock.advance(MINUTE);
    const { json } = await bench.ask('GET /v2/introspect/historical_pull?user_id={user}');
    const [first] = json['data'] as { provider: Record<string, { pulled: Record<string, object> }> }[];
    const { range_start, range_end, days_with_data } = Object(first!.provider[PROVIDER]!.pulled['meal']);
    return [range_start.slice(0, 10), range_end.slice(0, 10), days_with_data];
  };

  test.each([
    [{}, {}, ['2026-01-01', '2026-01-10', 10]],
    [{ ingestion_start: '2026-01-03', ingestion_end: '2026-01-07' }, {}, ['2026-01-03', '2026-01-07', 5]],
    [{}, { historical_days_to_pull: 3 }, ['2026-01-08', '2026-01-10', 3]],
    [{}, { historical_days_to_pull: 30 }, ['2025-12-12', '2026-01-10', 10]],
    [
      { ingestion_end: '2026-01-09' },
      { historical_days_to_pull: 3, provider_specific: { [PROVIDER]: { historical_days_to_pull: 5 } } },
      ['2026-01-06', '2026-01-09', 4],
    ],
  ])('honours the bounds of the user %j and the preferences of the team %j', async (bounds, data, range) => {
    const bench = await Bench.start({ providers: [PROVIDER] });
    expect((await bench.ask('PATCH /v2/user/{user}', bounds)).json).toMatchObject(bounds);
    const { json } = await bench.manage('PATCH /team/{team}', { data_pull_preferences: data });
    expect(json['data_pull_preferences']).toEqual(data);
    expect(await rangeOf(bench)).toEqual(range);
  });

  test.each([
    [365, 'success'],
    [3650, 'in_progress'],
  ])('of %i days leaves the bulk op %s after a minute', async (days, status) => {
    const bench = await Bench.start({ providers: [PROVIDER], users: 2 });
    await bench.manage('PATCH /team/{team}', { data_pull_preferences: { historical_days_to_pull: days } });
    await bench.trigger(PROVIDER, 2);
    bench.clock.advance(MINUTE);
    const [op] = bench.state.bulkOps.list(bench.sandbox.teamId);
    expect(op!.status).toBe(status);
    bench.clock.advance(HOUR);
    expect(op!.status).toBe('success');
  });
});

test.each([
  ['abortedOps', 202, /aborted after/],
  ['failedOps', 202, /failure after/],
  ['retryingUsers', 200, /processed/],
])('a trigger that waits, with %s: %i', async (fault, status, detail) => {
  const bench = await Bench.start({ faults: { [fault]: 1 } });
  const answer = bench.ask(BULK, { user_ids: ['{user}'], provider: 'made_up', wait_for_completion: true });
  await until('the op', () => bench.state.bulkOps.list(bench.sandbox.teamId).length > 0);
  await bench.get('/v2/user');
  bench.clock.advance(20 * SECOND);
  expect(await answer).toMatchObject({ status, json: { detail: expect.stringMatching(detail) } });
});

test('an unknown key in X-Management-Key is invalid, whatever the old header says; none is missing', async () => {
  const bench = await Bench.start();
  const ask = async (headers: Record<string, string>) =>
    (await bench.call('GET', '/management/v1/team', undefined, headers)).json['detail'];
  const old = { 'x-service-org-key': bench.sandbox.orgManagementKey };
  expect(await ask({ 'x-management-key': 'wrong', ...old })).toBe('Invalid Management Key');
  expect(await ask({ 'x-management-key': 'wrong' })).toBe('Invalid Management Key');
  expect(await ask({})).toMatch(/^Missing Management Key/);
});

test('a deletion ends the pulls of the user, and after an undo nothing comes of its connections', async () => {
  const bench = await Bench.start({ users: 1, providers: [PROVIDER], dailyEveryMs: MINUTE });
  const [id, { counts }] = [bench.user(), bench.state.events];
  await bench.trigger(PROVIDER, 1);
  bench.clock.advance(2 * SECOND);
  await bench.call('DELETE', `/v2/user/${id}`);
  await bench.post(`/v2/user/undo_delete?user_id=${id}`);
  bench.clock.advance(DAY);
  expect(Object.fromEntries(counts)).toEqual({});
  const { json } = await bench.get('/v2/introspect/historical_pull');
  expect(JSON.stringify(json)).toContain('"status":"failure"');
  expect(JSON.stringify(json)).not.toContain('"status":"in_progress"');
});

describe('orders', () => {
  test.each<[number, object, object?]>([
    [200, { lab_test_ids: ['{test}'] }, { id: '{test}', auto_generated: false }],
    [200, { add_on: { marker_ids: [1, 5] } }, { auto_generated: true, markers: [{ id: 1 }, { id: 5 }] }],
    [200, { lab_test_ids: ['{test}'], add_on: { provider_ids: ['M0237'] } }, { auto_generated: true }],
    [400, { add_on: { marker_ids: [1, 2] } }],
    [404, { add_on: { marker_ids: [1000] } }],
    [400, {}],
  ])('%i of %j', async (status, order_set, lab_test) => {
    const bench = await Bench.start();
    const answer = await bench.post('/v3/order/create', { user_id: '{user}', order_set });
    expect(answer.status).toBe(status);
    const wanted = JSON.parse(
      JSON.stringify(lab_test ?? {}).replace('{test}', bench.state.labs.tests[0]!.id),
    );
    if (status === 200) expect(answer.json['order']).toMatchObject({ lab_test: wanted });
  });

  test('values that are not documented occur when they are asked for', async () => {
    for (const unknownValues of [true, false]) {
      const bench = await Bench.start({ unknownValues });
      for (let n = 0; n < 20; n += 1) await bench.order({ user_id: `{user${n}}` });
      bench.clock.advance(30 * DAY);
      const orders = JSON.stringify((await bench.get('/orders?size=100')).json);
      expect(orders.includes('"interpretation":"made_up_not_listed"')).toBe(unknownValues);
      expect(orders.includes('collecting_sample.testkit.made_up_not_listed')).toBe(unknownValues);
      const users = JSON.stringify((await bench.get('/v2/user')).json);
      expect(users.includes('"slug":"made_up_not_listed"')).toBe(unknownValues);
    }
  });
});

test('the beta is enabled per team', async () => {
  const bench = await Bench.start({ features: { parsing: false } });
  expect((await bench.upload()).status).toBe(403);
  await bench.manage('PATCH /team/{team}', { lab_report_parsing: true });
  expect((await bench.upload()).status).toBe(200);
});

test('default clinical notes are a text in every account', async () => {
  const bench = await Bench.start();
  const { json } = await bench.get('/v3/lab_test/lab_account');
  for (const account of json['data'] as object[])
    expect(account).toMatchObject({ default_clinical_notes: expect.any(String) });
});

test('users can be without a client user id, and are still two', async () => {
  const bench = await Bench.start();
  const made = [await bench.post('/v2/user'), await bench.post('/v2/user', { client_user_id: null })];
  expect(made.map(({ status, json }) => [status, json['client_user_id']])).toEqual([
    [200, null],
    [200, null],
  ]);
  expect(made[0]!.json['user_id']).not.toBe(made[1]!.json['user_id']);
});

test('a start can be left out: all meals, and slots from today on', async () => {
  const bench = await Bench.start();
  expect((await bench.ask('GET /v2/summary/meal/{user}')).json['meals']).toHaveLength(30);
  const { json } = await bench.ask('POST /v3/order/phlebotomy/appointment/availability');
  const days = (json['slots'] as { date: string }[]).map(({ date }) => date);
  expect([days.length, days[0]]).toEqual([14, bench.state.timers.stamp().slice(0, 10)]);
});

test('with --plan launch, --etl is said to be off', async () => {
  const args = ['--plan', 'launch', '--etl', 'not-read.yaml', '--port', '0'];
  const { stderr } = await run(sandboxCommand, args, {}, AbortSignal.abort());
  expect(stderr).toContain('pipelines are off');
});

test('faults that too few users can have are refused, not left out', async () => {
  const start = Bench.start({ users: 2, faults: { failingUsers: 3 } });
  await expect(start).rejects.toMatchObject({ code: 'usage', detail: expect.stringContaining('1 failing') });
});
