import { buffer, json } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { ServiceClient } from '../../src/service/client.ts';
import { MINUTE, SECOND } from '../sandbox/manual-clock.ts';
import { until } from '../support/until.ts';
import { setUp } from './support.ts';

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('meals', () => {
  test('as a document and as a stream', async () => {
    const { client, user } = await setUp();
    const range = { start: '2026-01-01', end: '2026-01-05', provider: 'made_up' };
    const { meals } = await client.meals.summary(user(), range);
    expect(meals.length).toBeGreaterThan(5);
    expect(meals[0]).toMatchObject({ user_id: user(), calendar_date: '2026-01-01' });
    expect(await json(await client.meals.stream(user(), range))).toEqual({ meals });
  });

  test('a stream that is left midway lets its connection go', async () => {
    const { client, user } = await setUp(
      { connections: 1 },
      { days: 36_500, mealsPerDay: 20, since: '1927-01-01' },
    );
    const range = { start: '1927-01-01' };
    for await (const piece of await client.meals.stream(user(), range)) {
      expect((piece as Buffer).subarray(0, 10).toString()).toBe('{"meals":[');
      break;
    }
    expect(await client.meals.summary(user(), { start: '2027-06-01' })).toEqual({ meals: [] });
  });
});

describe('bulk', () => {
  test('trigger, follow the op, follow the pulls', async () => {
    const { client, clock, user } = await setUp({}, { providers: ['made_up'] });
    const userIds = Array.from({ length: 20 }, (_, n) => user(n));
    const triggered = await client.bulk.trigger({ userIds, provider: 'made_up' });
    expect(triggered).toEqual({ outcome: 'accepted', status: 202, detail: 'Accepted 20 triggers' });
    clock.advance(3 * MINUTE);
    const ops = await collect(client.bulk.ops({ pageSize: 1 }));
    expect(ops).toMatchObject([{ provider: 'made_up', status: 'success', pending: 0, processed: 20 }]);
    const pulls = await collect(client.pulls.users({ provider: 'made_up', userLimit: 7 }));
    expect(pulls.map(({ user_id }) => user_id)).toEqual(userIds);
    expect(pulls[0]?.provider['made_up']?.pulled['meal']).toMatchObject({ status: 'success' });
    expect((await client.pulls.status({ userId: user(3) })).data).toHaveLength(1);
  });

  test('a wait that took too long is accepted, not completed', async () => {
    const { client, clock, sandbox, user } = await setUp();
    const { bulkOps } = sandbox.state;
    const wait = async (count: number): Promise<string> => {
      const before = bulkOps.list(sandbox.teamId).length;
      const userIds = Array.from({ length: count }, (_, n) => user(n));
      const answer = client.bulk.trigger({ userIds, provider: 'made_up', waitForCompletion: true });
      await until('the op', () => bulkOps.list(sandbox.teamId).length > before);
      await client.users.get(user());
      clock.advance(20 * SECOND);
      return (await answer).outcome;
    };
    expect(await wait(20)).toBe('accepted');
    clock.advance(3 * MINUTE);
    expect(await wait(2)).toBe('completed');
  });

  test.each([
    ['nothing', 202, '', null],
    ['text', 202, 'fine', 'fine'],
    ['an object', 200, { detail: { message: 'fine' } }, 'fine'],
  ])('an answer of %s is a success', async (_, status, body, detail) => {
    const { client, sandbox, user } = await setUp();
    sandbox.state.faults.next({ kind: 'answer', status, body });
    const triggered = await client.bulk.trigger({ userIds: [user()], provider: 'made_up' });
    expect(triggered).toEqual({ outcome: status === 200 ? 'completed' : 'accepted', status, detail });
  });
});

describe('users', () => {
  test('create, list, read, delete, undo, insurance', async () => {
    const { client, user } = await setUp();
    const made = await client.users.create('customer-patient-123');
    expect(made).toMatchObject({ client_user_id: 'customer-patient-123' });
    expect(await collect(client.users.all({ pageSize: 8 }))).toHaveLength(21);
    expect((await client.users.list({ offset: 20, limit: 5 })).users).toMatchObject([
      { user_id: made.user_id },
    ]);
    expect(await client.users.delete(made.user_id)).toEqual({ success: true });
    expect(await client.users.undoDeletion({ clientUserId: 'customer-patient-123' })).toEqual({
      success: true,
    });
    expect(await client.users.delete(made.user_id)).toEqual({ success: true });
    expect(await client.users.undoDeletion({ userId: made.user_id })).toEqual({ success: true });
    expect(await client.users.get(made.user_id)).toMatchObject({ connected_sources: [] });
    expect(await client.users.latestInsurance(user())).toMatchObject({ relationship: 'Self' });
  });
});

test('users of a service that names no total are read page after page', async () => {
  const { client, sandbox, user } = await setUp();
  const page = (...users: string[]): void =>
    sandbox.state.faults.next({
      kind: 'answer',
      status: 200,
      body: { users: users.map((user_id) => ({ user_id })), total: null },
    });
  page(user(0), user(1));
  page(user(2));
  // The one in front of the second page.
  page(user(1));
  // Behind the end, and the one in front of it.
  page();
  page(user(2));
  // Whether anything has moved meanwhile.
  page(user(2));
  page(user(0));
  expect((await collect(client.users.all({ pageSize: 2 }))).map(({ user_id }) => user_id)).toEqual([
    user(0),
    user(1),
    user(2),
  ]);
});

describe('labs', () => {
  test('a team without lab accounts, and an answer that is another list', async () => {
    const { client, sandbox } = await setUp();
    for (const body of [{}, { data: null }]) {
      sandbox.state.faults.next({ kind: 'answer', status: 200, body });
      expect((await client.labs.accounts()).data).toEqual([]);
    }
    sandbox.state.faults.next({ kind: 'answer', status: 200, body: { accounts: [] } });
    await expect(client.labs.accounts()).rejects.toMatchObject({ code: 'answer_malformed' });
  });

  test('markers, accounts, areas', async () => {
    const { client, sandbox } = await setUp();
    const { tests, accounts } = sandbox.state.labs;
    const set = { labTestIds: [tests[0]!.id], addOnProviderIds: ['M0002'] };
    const page = await client.labs.orderSetMarkers(set, { page: 2, size: 30 });
    expect([page.total, page.page, page.size, page.markers.length]).toEqual([31, 2, 30, 1]);
    expect((await client.labs.markers({ labSlug: 'made_up_lab_1', size: 100 })).total).toBe(60);
    expect((await client.labs.accounts({ status: 'pending' })).data).toMatchObject([{ status: 'pending' }]);
    expect((await client.labs.accounts({ labAccountId: accounts[0]!.id })).data).toHaveLength(1);
    const area = await client.labs.areaInfo({
      zipCode: '12345',
      radius: 50,
      labs: ['made_up_lab_1', 'made_up_lab_2'],
    });
    expect(Object.keys(area.central_labs)).toEqual(['made_up_lab_1', 'made_up_lab_2']);
    const centers = { patient_service_centers: { radius: '50' } };
    expect(area.central_labs).toMatchObject({ made_up_lab_1: centers });
  });
});

describe('orders', () => {
  test('create, import, list, appointments', async () => {
    const { client, sandbox, user } = await setUp();
    const { tests, accounts } = sandbox.state.labs;
    const fields = { lab_test_id: tests[0]!.id };
    const created = await client.orders.create({ userId: user(), clinicalNotes: 'Fasting.', fields });
    expect(created['order']).toMatchObject({ clinical_notes: expect.stringContaining('Fasting.') as string });
    const pending = { userId: user(), labAccountId: accounts[4]!.id, fields };
    const imported = { lab_account_id: accounts[4]!.id, origin: 'initial' };
    expect((await client.orders.import(pending))['order']).toMatchObject(imported);
    expect((await client.orders.list({ size: 1 })).orders).toHaveLength(1);
    expect((await client.orders.list({ interpretation: 'critical' })).orders).toEqual([]);
    const { slots } = await client.orders.appointmentAvailability('2026-12-01', { zip_code: '12345' });
    expect(slots).toHaveLength(14);
  });

  test('an order whose answer was lost is placed once', async () => {
    const { client, sandbox, user } = await setUp();
    sandbox.state.faults.next({ kind: 'drop-after' });
    const fields = { lab_test_id: sandbox.state.labs.tests[0]!.id };
    const created = await client.orders.create({ userId: user(), fields });
    expect(created['message']).toBe('order exists');
    expect((await client.orders.list()).orders).toHaveLength(1);
  });
});

describe('parsing jobs', () => {
  test('upload and read', async () => {
    const { client, clock, user } = await setUp();
    const file = Buffer.from('%PDF-1.7 a made-up report');
    const job = await client.parsingJobs.create({
      userId: user(),
      file,
      fileName: 'made-up.pdf',
      needsHumanReview: true,
    });
    expect(job).toMatchObject({ status: 'upload_pending', needs_human_review: true });
    clock.advance(MINUTE);
    expect(await client.parsingJobs.get(job.id)).toMatchObject({ status: 'pending_review' });
  });
});

describe('management and webhooks', () => {
  test('teams, brand, keys', async () => {
    const { client } = await setUp();
    const team = await client.management.createTeam('another');
    await client.management.updateTeam(team.id, { partial_results: true });
    expect(await client.management.setBrand(team.id, { colour: 'made up' })).toEqual({ colour: 'made up' });
    expect(await client.management.brand(team.id)).toEqual({ colour: 'made up' });
    const key = await client.management.createApiKey(team.id, 'second');
    expect(key.key).toMatch(/^sk_sandbox_/);
    expect((await client.management.apiKeys(team.id)).data).toHaveLength(2);
    await client.management.deleteApiKey(team.id, key.id);
    const made = await client.management.createManagementKey({ kind: 'team', teamIds: [team.id] });
    expect((await client.management.managementKeys()).data).toHaveLength(3);
    await client.management.deleteManagementKey(made.id);
    await client.management.deleteTeam(team.id);
    expect((await client.management.teams()).data).toHaveLength(1);
  });

  test('webhooks', async () => {
    const { client, sandbox } = await setUp();
    const team = sandbox.teamId;
    const { id } = await client.webhooks.create(team, { url: 'http://127.0.0.1:9/', eventTypes: ['daily.'] });
    expect(await client.webhooks.update(team, id, { disabled: true })).toMatchObject({ disabled: true });
    expect(await client.webhooks.get(team, id)).toMatchObject({ event_types: ['daily.'], disabled: true });
    await client.webhooks.setHeaders(team, id, { 'x-made-up': 'yes' });
    expect(await client.webhooks.headers(team, id)).toEqual({ headers: { 'x-made-up': 'yes' } });
    const { secret } = await client.webhooks.updateSecret(team, id);
    expect(await client.webhooks.secret(team, id)).toEqual({ secret });
    expect((await client.webhooks.list(team)).data).toHaveLength(1);
    await client.webhooks.delete(team, id);
    expect((await client.webhooks.list(team)).data).toEqual([]);
  });
});

describe('options', () => {
  test('paths and headers can be others; the deprecated management header is warned of', async () => {
    const { client, sandbox } = await setUp(
      { paths: { listUsers: '/v2/user' }, apiKeyHeader: 'x-made-up-key' },
      { apiKeyHeader: 'x-made-up-key' },
    );
    expect((await client.users.list()).total).toBe(20);
    const warnings: string[] = [];
    const old = new ServiceClient({
      baseUrl: sandbox.url,
      managementKey: sandbox.orgManagementKey,
      managementKeyHeader: 'X-Service-Org-Key',
      onWarning: (message) => warnings.push(message),
    });
    expect((await old.management.teams()).data).toHaveLength(1);
    expect(warnings).toEqual([expect.stringContaining('deprecated')]);
    await old.close();
  });
});

test('bytes of a stream are the bytes that were sent', async () => {
  const { client, sandbox, user } = await setUp();
  const body = '{"meals":[], "big": 9007199254740993, "é": -0}';
  sandbox.state.faults.next({ kind: 'answer', status: 200, body });
  expect((await buffer(await client.meals.stream(user(), { start: '2026-01-01' }))).toString()).toBe(body);
});
