import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND } from '../support/manual-clock.ts';
import { Bench, type Answer } from './support.ts';

describe('User deletion', () => {
  test('connections are deregistered at once; undo brings the user back, but not them', async () => {
    const bench = await Bench.start();
    const id = bench.user();
    const before = await bench.get(`/v2/summary/meal/${id}?start_date=2026-01-01`);
    expect((await bench.call('DELETE', `/v2/user/${id}`)).json).toEqual({ success: true });
    expect((await bench.get(`/v2/user/${id}`)).status).toBe(404);
    expect((await bench.get(`/v2/summary/meal/${id}?start_date=2026-01-01`)).status).toBe(404);
    bench.clock.advance(7 * DAY - SECOND);
    expect((await bench.post(`/v2/user/undo_delete?user_id=${id}`)).json).toEqual({ success: true });
    expect((await bench.get(`/v2/user/${id}`)).json).toMatchObject({ user_id: id, connected_sources: [] });
    const after = await bench.get(`/v2/summary/meal/${id}?start_date=2026-01-01`);
    expect(after.json).toEqual(before.json);
    bench.clock.advance(DAY);
    expect((await bench.get(`/v2/user/${id}`)).status).toBe(200);
  });

  test('after seven days the data is erased, and nothing can be undone', async () => {
    const bench = await Bench.start();
    const id = bench.user();
    const job = String((await bench.upload()).json['id']);
    await bench.ask('DELETE /v2/user/{user}');
    bench.clock.advance(7 * DAY);
    const undone = await bench.post('/v2/user/undo_delete?client_user_id=made-up-client-0');
    expect(undone.status).toBe(404);
    expect((await bench.get(`/lab_report/v1/parser/job/${job}`)).status).toBe(404);
    expect((await bench.call('DELETE', `/v2/user/${id}`)).status).toBe(404);
    expect((await bench.get('/v2/user')).json['total']).toBe(19);
  });

  test('undo is open for the seven days, also when the client user id was used again', async () => {
    const bench = await Bench.start();
    const id = bench.user();
    const again = { client_user_id: 'made-up-client-0' };
    await bench.call('DELETE', `/v2/user/${id}`);
    const second = String((await bench.post('/v2/user', again)).json['user_id']);
    expect((await bench.post('/v2/user/undo_delete?client_user_id=made-up-client-0')).status).toBe(200);
    for (const user of [id, second]) expect((await bench.get(`/v2/user/${user}`)).json).toMatchObject(again);
    // As long as one of the two is there, the client user id is in use.
    for (const [user, status] of [
      [second, 400],
      [id, 200],
    ] as const) {
      await bench.call('DELETE', `/v2/user/${user}`);
      expect((await bench.post('/v2/user', again)).status).toBe(status);
    }
  });
});

describe('Other state sets', () => {
  test.each(['active', 'pending', 'suspended'])('lab accounts: %s occurs', async (status) => {
    const bench = await Bench.start();
    const { json } = await bench.get(`/v3/lab_test/lab_account?status=${status}`);
    const found = (json['data'] as { status: string }[]).map((account) => account.status);
    expect(new Set(found)).toEqual(new Set([status]));
  });

  test('order statuses: both problems in transit occur, and orders complete', async () => {
    const bench = await Bench.start();
    const seen = new Set<unknown>();
    for (let n = 0; n < 11; n += 1) await bench.order({ user_id: `{user${n}}` });
    for (let hour = 0; hour < 24 * 8; hour += 6) {
      const { json } = await bench.get('/orders?size=100');
      for (const order of json['orders'] as { status: string; low_level_status: string }[])
        seen.add(order.status).add(order.low_level_status);
      bench.clock.advance(6 * HOUR);
    }
    expect([...seen]).toEqual(
      expect.arrayContaining([
        'problem_in_transit_lab',
        'problem_in_transit_customer',
        'collecting_sample.testkit.problem_in_transit_customer',
        'collecting_sample.testkit.problem_in_transit_lab',
        'completed.testkit.completed',
      ]),
    );
  });

  test('parsing job statuses: completed, failed, and pending review before completion', async () => {
    const bench = await Bench.start();
    const plain = await bench.upload();
    const empty = await bench.upload({ file: new Blob(['%PDF-']) });
    const reviewed = await bench.upload({ needs_human_review: 'true' });
    const read = async ({ json }: Answer) =>
      (await bench.get(`/lab_report/v1/parser/job/${String(json['id'])}`)).json;
    bench.clock.advance(SECOND);
    expect(await read(plain)).toMatchObject({ status: 'started' });
    bench.clock.advance(MINUTE);
    expect(await read(plain)).toMatchObject({ status: 'completed', is_reviewed: false });
    expect(await read(empty)).toMatchObject({
      status: 'failed',
      failure_reason: expect.any(String) as string,
    });
    expect(await read(reviewed)).toMatchObject({ status: 'pending_review', data: null });
    bench.clock.advance(HOUR);
    expect(await read(reviewed)).toMatchObject({ status: 'completed', is_reviewed: true });
  });

  test('historical pulls: retrying is temporary, failure permanent, with error details', async () => {
    const bench = await Bench.start({
      faults: { failingUsers: 1, retryingUsers: 1 },
      providers: ['made_up_bulk_a'],
    });
    const { users, pulls } = bench.state;
    const all = users.list(bench.sandbox.teamId);
    const find = (fate: string): string => all.find((user) => pulls.fateOf(user) === fate)!.id;
    expect((await bench.trigger('made_up_bulk_a')).status).toBe(202);
    const seen = { failing: new Set<unknown>(), retrying: new Set<unknown>(), lucky: new Set<unknown>() };
    let last: Record<string, unknown> = {};
    for (let half = 0; half < 600; half += 1) {
      for (const fate of ['failing', 'retrying', 'lucky'] as const) {
        last = { ...last, [fate]: await mealPull(bench, find(fate)) };
        seen[fate].add((last[fate] as { status?: string }).status);
      }
      bench.clock.advance(SECOND / 2);
    }
    expect([...seen.failing]).toEqual([undefined, 'scheduled', 'in_progress', 'failure']);
    expect([...seen.retrying]).toEqual([undefined, 'scheduled', 'in_progress', 'retrying', 'success']);
    expect([...seen.lucky]).toEqual([undefined, 'scheduled', 'in_progress', 'success']);
    expect(last['failing']).toMatchObject({ error_details: { message: expect.any(String) as string } });
    expect(last['lucky']).toMatchObject({ error_details: null, days_with_data: 10 });
  });

  test('retrying applies to connections established after 9 May 2025', async () => {
    const bench = await Bench.start({ faults: { retryingUsers: 18 }, providers: ['made_up_bulk_a'] });
    const { users, pulls } = bench.state;
    const fates = users.list(bench.sandbox.teamId).map((user) => pulls.fateOf(user));
    expect(fates.filter((fate) => fate === 'retrying')).toHaveLength(18);
    expect(fates[9]).toBe('lucky');
    await expect(Bench.start({ faults: { retryingUsers: 19 } })).rejects.toMatchObject({ code: 'usage' });
  });
});

async function mealPull(bench: Bench, user: string): Promise<unknown> {
  const { json } = await bench.get(`/v2/introspect/historical_pull?user_id=${user}`);
  const [first] = json['data'] as { provider: Record<string, { pulled: Record<string, object> }> }[];
  return first?.provider['made_up_bulk_a']?.pulled['meal'] ?? {};
}
