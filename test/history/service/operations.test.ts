import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { newSecret } from '../../../src/core/secrets.ts';
import { ServiceClient } from '../../../src/history/service/client.ts';
import { MINUTE } from '../../support/manual-clock.ts';
import { mealsOf, setUp } from './support.ts';

describe('meals', () => {
  test('a stream that is left midway lets its connection go', async () => {
    const { client, user } = await setUp(
      { connections: 1 },
      { days: 36_500, mealsPerDay: 20, since: '1927-01-01' },
    );
    const range = { start: '1927-01-01' };
    for await (const piece of await client.users.data('mealSummary', user(), range)) {
      expect((piece as Buffer).subarray(0, 10).toString()).toBe('{"meals":[');
      break;
    }
    expect(await mealsOf(client, user(), { start: '2027-06-01' })).toEqual([]);
  });
});

describe('bulk', () => {
  test('trigger, follow the op, follow the pulls', async () => {
    const { client, clock, user } = await setUp({}, { providers: ['made_up'] });
    const userIds = Array.from({ length: 20 }, (_, n) => user(n));
    await client.bulk.trigger({ userIds, provider: 'made_up' });
    clock.advance(3 * MINUTE);
    const ops = await Array.fromAsync(client.bulk.ops({ pageSize: 1 }));
    expect(ops).toMatchObject([{ provider: 'made_up', status: 'success', pending: 0, processed: 20 }]);
    const pulls = await Array.fromAsync(client.pulls.users({ provider: 'made_up', userLimit: 7 }));
    expect(pulls.map(({ user_id }) => user_id)).toEqual(userIds);
  });

  test.each([
    ['nothing', 202, ''],
    ['text', 202, 'fine'],
    ['an object', 200, { detail: { message: 'fine' } }],
  ])('an answer of %s is a success', async (_, status, body) => {
    const { client, sandbox, user } = await setUp();
    sandbox.state.faults.next({ kind: 'answer', status, body });
    const outcome = await client.bulk.trigger({ userIds: [user()], provider: 'made_up' });
    expect(outcome).toBe(status === 200 ? 'completed' : 'accepted');
  });
});

test('list, read, delete, undo, insurance', async () => {
  const { client, sandbox, user } = await setUp();
  const made = sandbox.state.users.create(sandbox.teamId, 'customer-patient-123').id;
  expect(await Array.fromAsync(client.users.all({ pageSize: 8 }))).toHaveLength(21);
  expect((await client.users.list({ offset: 20, limit: 5 })).users).toMatchObject([{ user_id: made }]);
  for (const deleted of [{ clientUserId: 'customer-patient-123' }, { userId: made }]) {
    expect(await client.users.delete(made)).toEqual({ success: true });
    expect(await client.users.undoDeletion(deleted)).toEqual({ success: true });
  }
  expect(await client.users.get(made)).toMatchObject({ connected_sources: [] });
  expect(await client.users.latestInsurance(user())).toMatchObject({ relationship: 'Self' });
});

test('users of a service that names no total are read page after page', async () => {
  const { client, sandbox, user } = await setUp();
  // Two pages, and the one in front of the second; behind the end, and the one in front of it; whether anything has moved.
  for (const page of [[0, 1], [2], [1], [], [2], [2], [0]]) {
    const body = { users: page.map((n) => ({ user_id: user(n) })), total: null };
    sandbox.state.faults.next({ kind: 'answer', status: 200, body });
  }
  const users = await Array.fromAsync(client.users.all({ pageSize: 2 }));
  expect(users.map(({ user_id }) => user_id)).toEqual([user(0), user(1), user(2)]);
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

  test('a page, an account by its id, a radius', async () => {
    const { client, sandbox } = await setUp();
    const { tests, accounts } = sandbox.state.labs;
    const set = { labTestIds: [tests[0]!.id], addOnProviderIds: ['M0002'] };
    const page = await client.labs.orderSetMarkers(set, { page: 2, size: 30 });
    expect(page).toMatchObject({ total: 31, page: 2, size: 30, markers: { length: 1 } });
    expect((await client.labs.accounts({ labAccountId: accounts[0]!.id })).data).toHaveLength(1);
    const area = await client.labs.areaInfo({ zipCode: '12345', radius: 50, labs: ['made_up_lab_1'] });
    const centers = expect.objectContaining({ radius: '50' }) as object;
    expect(area.central_labs).toEqual({
      made_up_lab_1: expect.objectContaining({ patient_service_centers: centers }),
    });
  });
});

test('webhooks', async () => {
  const { client, sandbox } = await setUp();
  const team = sandbox.teamId;
  const secret = newSecret();
  const wanted = { url: 'http://127.0.0.1:9/', eventTypes: ['daily.'], secret };
  const { id } = await client.webhooks.create(team, wanted);
  const { data } = await client.webhooks.list(team);
  expect(data).toMatchObject([{ id, event_types: ['daily.'], disabled: false }]);
  expect(await client.webhooks.secret(team, id)).toEqual({ secret });
  const other = newSecret();
  await client.webhooks.updateSecret(team, id, other);
  expect(await client.webhooks.secret(team, id)).toEqual({ secret: other });
  await client.webhooks.delete(team, id);
  expect((await client.webhooks.list(team)).data).toEqual([]);
});

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
  expect((await old.webhooks.teams()).data).toHaveLength(1);
  expect(warnings).toEqual([expect.stringContaining('deprecated')]);
  await old.close();
});

test('bytes of a stream are the bytes that were sent', async () => {
  const { client, sandbox, user } = await setUp();
  const body = '{"meals":[], "big": 9007199254740993, "é": -0}';
  sandbox.state.faults.next({ kind: 'answer', status: 200, body });
  expect(
    (await buffer(await client.users.data('mealSummary', user(), { start: '2026-01-01' }))).toString(),
  ).toBe(body);
});
