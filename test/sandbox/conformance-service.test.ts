import { describe, expect, test } from 'vitest';
import { OPERATIONS } from '../../src/sandbox/app.ts';
import { Bench } from './support.ts';
import { DAY, HOUR, MINUTE } from '../support/manual-clock.ts';
import { startReceiver } from './receiver.ts';
import { until } from '../support/until.ts';

describe('Authentication', () => {
  test('every team operation needs the team API key', async () => {
    const bench = await Bench.start();
    const { orgManagementKey, teamManagementKey } = bench.sandbox;
    const bearers = ['wrong', orgManagementKey, teamManagementKey].map((key) => ({
      'x-service-api-key': key,
    }));
    for (const { method, path, auth } of OPERATIONS)
      for (const headers of [{}, ...bearers]) {
        const { status } = await bench.call(method.toUpperCase(), path, undefined, headers);
        expect([auth, path, status]).toEqual([auth, path, 401]);
      }
  });

  test('a Management Key cannot be used as a team API key, nor the other way round', async () => {
    const bench = await Bench.start();
    const asTeam = await bench.call('GET', '/v2/user', undefined, {
      'x-service-api-key': bench.sandbox.orgManagementKey,
    });
    expect(asTeam.json['detail']).toBe('A Management Key cannot be used as a team API key');
    expect((await bench.manage('GET /team', undefined, bench.sandbox.apiKey)).status).toBe(401);
  });

  test('the deprecated header is accepted', async () => {
    const bench = await Bench.start();
    const headers = { 'x-service-org-key': bench.sandbox.orgManagementKey };
    const { status, headers: answered } = await bench.call('GET', '/management/v1/team', undefined, headers);
    expect([status, answered.get('deprecation')]).toEqual([200, 'true']);
  });

  test('an Org Management Key creates and deletes teams and keys; a new team is a world of its own', async () => {
    const bench = await Bench.start();
    const { json: team } = await bench.manage('POST /team', { name: 'another' });
    const id = String(team['id']);
    const own = { 'x-service-api-key': String(team['api_key']) };
    expect((await bench.call('GET', '/v2/user', undefined, own)).json['total']).toBe(0);
    expect((await bench.call('GET', `/v2/user/${bench.user()}`, undefined, own)).status).toBe(404);
    const { json: second } = await bench.manage(`POST /team/${id}/api_key`, { label: 'second' });
    const { json: keys } = await bench.manage(`GET /team/${id}/api_key`);
    expect(keys['data']).toHaveLength(2);
    expect(JSON.stringify(keys)).not.toContain(String(second['key']));
    await bench.manage(`DELETE /team/${id}/api_key/${String(second['id'])}`);
    const gone = { 'x-service-api-key': String(second['key']) };
    expect((await bench.call('GET', '/v2/user', undefined, gone)).status).toBe(401);
    expect((await bench.manage(`DELETE /team/${id}`)).json).toEqual({ success: true });
    expect((await bench.call('GET', '/v2/user', undefined, own)).status).toBe(401);
  });

  test.each<[number, string, object?]>([
    [200, 'GET /team/{team}/api_key'],
    [200, 'PUT /team/{team}/brand', { colour: 'made up' }],
    [200, 'GET /team/{team}/webhook'],
    [403, 'GET /team/{other}/brand'],
    [403, 'POST /team', { name: 'mine' }],
    [403, 'DELETE /team/{team}'],
    [403, 'GET /key'],
    [403, 'POST /key', { kind: 'org' }],
  ])(
    'a Team Management Key reaches its teams, and nothing of the organization: %i %s',
    async (status, request, body) => {
      const bench = await Bench.start();
      const { json: other } = await bench.manage('POST /team', { name: 'other' });
      const key = bench.sandbox.teamManagementKey;
      const answer = await bench.manage(request.replace('{other}', String(other['id'])), body, key);
      expect(answer.status).toBe(status);
      expect((await bench.manage('GET /team', undefined, key)).json['data']).toHaveLength(1);
    },
  );

  test('a Team Management Key for two teams is made by Create Management Key', async () => {
    const bench = await Bench.start();
    const other = String((await bench.manage('POST /team', { name: 'other' })).json['id']);
    const fields = { kind: 'team', team_ids: [bench.sandbox.teamId, other] };
    const { json: made } = await bench.manage('POST /key', fields);
    const reached = () => bench.manage('GET /team', undefined, String(made['key']));
    expect((await reached()).json['data']).toHaveLength(2);
    await bench.manage(`DELETE /key/${String(made['id'])}`);
    expect((await reached()).status).toBe(401);
    expect((await bench.manage('POST /key', { kind: 'team' })).status).toBe(400);
  });
});

describe('Events', () => {
  test('parsing jobs and orders are announced, with team, user and client user at the top level', async () => {
    const receiver = await startReceiver();
    const bench = await Bench.start({
      webhooks: [{ url: receiver.url }],
      features: { partialResults: true },
    });
    await bench.upload({ needs_human_review: 'true' });
    bench.clock.advance(2 * HOUR);
    await bench.order();
    bench.clock.advance(30 * DAY);
    await bench.state.sender.idle();
    const whose = {
      team_id: bench.sandbox.teamId,
      user_id: bench.user(),
      client_user_id: 'made-up-client-0',
    };
    const sent = receiver.received.map(({ event }) => {
      expect(event).toMatchObject(whose);
      return `${String(event['event_type'])} ${String((event['data'] as { status?: string }).status)}`;
    });
    expect(sent).toEqual(
      expect.arrayContaining([
        'lab_report.parsing_job.created upload_pending',
        'lab_report.parsing_job.updated completed',
        'lab_report.parsing_job.updated pending_review',
        'labtest.order.created received.testkit.ordered',
        'labtest.order.updated completed.testkit.completed',
        'labtest.order.updated sample_with_lab.testkit.partial_results',
      ]),
    );
  });

  test('partial results are sent only to teams that enabled them', async () => {
    const bench = await Bench.start();
    const partial = async (): Promise<boolean> => {
      await bench.order();
      bench.clock.advance(8 * DAY);
      return JSON.stringify((await bench.get('/orders')).json).includes('partial_results');
    };
    expect(await partial()).toBe(false);
    await bench.manage('PATCH /team/{team}', { partial_results: true });
    expect(await partial()).toBe(true);
  });

  test('a completed pull is announced for each resource, up to five times within the hour', async () => {
    const bench = await Bench.start({ providers: ['made_up_bulk_a'] });
    await bench.trigger('made_up_bulk_a');
    bench.clock.advance(MINUTE);
    const { counts } = bench.state.events;
    const soon = counts.get('historical.data.meal.created') ?? 0;
    bench.clock.advance(HOUR);
    const later = counts.get('historical.data.meal.created') ?? 0;
    expect(soon).toBeGreaterThanOrEqual(20);
    expect(later).toBeGreaterThan(soon);
    expect(later).toBeLessThanOrEqual(100);
    expect(counts.get('historical.data.sleep.created')).toBeGreaterThanOrEqual(20);
  });

  test('a connection is announced', async () => {
    const receiver = await startReceiver();
    const bench = await Bench.start({ webhooks: [{ url: receiver.url }] });
    bench.sandbox.connect(bench.user(), 'made_up_9');
    await until('the event', () => receiver.received.length > 0);
    expect(receiver.received[0]?.event).toMatchObject({ event_type: 'provider.connection.created' });
  });

  test('daily data continues by itself when asked to', async () => {
    const bench = await Bench.start({ dailyEveryMs: MINUTE });
    bench.clock.advance(HOUR);
    expect(bench.state.events.counts.get('daily.data.meal.created')).toBe(60);
  });
});

describe('Errors', () => {
  test('Create User with a client_user_id that already exists', async () => {
    const bench = await Bench.start();
    const { status, json } = await bench.post('/v2/user', { client_user_id: 'made-up-client-3' });
    expect(status).toBe(400);
    expect(json['detail']).toMatchObject({ user_id: bench.user(3), created_on: '2025-06-02T08:00:00+00:00' });
    const made = await bench.post('/v2/user', { client_user_id: 'new' });
    expect(made.json).toMatchObject({ client_user_id: 'new', connected_sources: [] });
  });

  test('unknown paths, other methods, broken JSON', async () => {
    const bench = await Bench.start();
    expect((await bench.get('/v9/nothing')).json).toEqual({ detail: 'Not Found' });
    const other = await bench.call('PUT', '/v2/user');
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST, GET']);
    const response = await fetch(`${bench.sandbox.url}/v2/user`, {
      method: 'POST',
      headers: { 'x-service-api-key': bench.sandbox.apiKey, 'content-type': 'application/json' },
      body: '{"client_user_id":',
    });
    expect(response.status).toBe(422);
  });
});

describe('Limits', () => {
  test.each([
    ['made_up_slow', [2, 4, 6], 32],
    ['made_up', [8, 16, 24], 128],
    ['made_up_slowest', [1, 1, 1], 2],
    ['made_up_batch', [150, 150, 150], 500],
    // So many at a time, not throttled by time.
    ['made_up_bulk_b', [250, 500, 500], 500],
  ])('the throttle of %s, minute by minute', async (provider, expected, later) => {
    const bench = await Bench.start({ users: 500, providers: [provider] });
    await bench.trigger(provider, 500);
    const [op] = bench.state.bulkOps.list(bench.sandbox.teamId);
    bench.clock.advance(0);
    const seen = expected.map(() => {
      const { processed } = op!;
      bench.clock.advance(MINUTE);
      return processed;
    });
    expect(seen).toEqual(expected);
    bench.clock.advance(12 * MINUTE);
    expect(op!.processed).toBe(later);
  });

  test('operations of one provider share its rate', async () => {
    const bench = await Bench.start();
    for (let n = 0; n < 2; n += 1) await bench.trigger('made_up', 6);
    bench.clock.advance(0);
    const [second, first] = bench.state.bulkOps.list(bench.sandbox.teamId);
    expect([first!.processed, second!.processed]).toEqual([6, 2]);
  });
});

describe('Versioning', () => {
  test('the version is part of the path, and the page lists every operation', async () => {
    const bench = await Bench.start();
    const { json, headers } = await bench.call('GET', '/', undefined, {});
    expect(headers.get('content-type')).toContain('text/html');
    for (const { path } of OPERATIONS) expect(String(json['text'])).toContain(path);
    const core = OPERATIONS.filter(({ auth }) => auth === 'team').map(({ path }) => path);
    expect(core.filter((path) => !/^\/(v2|v3|lab_report\/v1)\//.test(path))).toEqual(['/orders']);
  });
});
