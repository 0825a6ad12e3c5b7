import { describe, expect, test } from 'vitest';
import { SCHEDULE } from '../../src/sandbox/sender.ts';
import { verifyStandardWebhooks } from './verify.ts';
import { Bench } from './support.ts';
import { DAY, HOUR, MINUTE, SECOND } from './manual-clock.ts';
import { startReceiver, type Receiver } from './receiver.ts';

const SECRET = `whsec_${Buffer.from('made-up secret of this test').toString('base64')}`;

/** Moves the clock, and lets what became due arrive. */
async function pass(bench: Bench, ms: number): Promise<void> {
  bench.clock.advance(ms);
  await bench.sandbox.state.sender.idle();
}

describe('webhooks', () => {
  test.each(['svix', 'webhook'] as const)('are signed, with %s-* headers', async (family) => {
    const receiver = await startReceiver();
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET, family }] });
    bench.sandbox.sendEvents(9);
    await bench.sandbox.state.sender.idle();
    expect(receiver.received).toHaveLength(9);
    for (const received of receiver.received)
      expect(verifyStandardWebhooks(SECRET, family, received)).toBe(true);
  });

  test('are tried again on the schedule, under the same id, and then exhausted', async () => {
    const receiver = await startReceiver();
    receiver.answer = { status: 302, headers: { location: receiver.url } };
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    const [id] = bench.sandbox.sendEvents(1);
    await pass(bench, 0);
    const counts = [receiver.received.length];
    for (const delay of SCHEDULE.slice(1)) {
      await pass(bench, delay - SECOND);
      counts.push(receiver.received.length);
      await pass(bench, SECOND);
    }
    expect(counts).toEqual([1, 1, 2, 3, 4, 5, 6, 7]);
    expect(SCHEDULE).toEqual([
      0,
      5 * SECOND,
      5 * MINUTE,
      30 * MINUTE,
      2 * HOUR,
      5 * HOUR,
      10 * HOUR,
      10 * HOUR,
    ]);
    const first = receiver.received.filter(({ headers }) => headers['svix-id'] === id);
    expect(first).toHaveLength(8);
    expect(bench.sandbox.state.events.counts.get('message.attempt.exhausted')).toBe(1);
  });

  test('Retry-After is honoured on 503', async () => {
    const receiver = await startReceiver();
    receiver.answer = { status: 503, headers: { 'retry-after': '600' } };
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    bench.sandbox.sendEvents(1);
    await pass(bench, 0);
    await pass(bench, 599 * SECOND);
    expect(receiver.received).toHaveLength(1);
    receiver.answer = { status: 200 };
    await pass(bench, SECOND);
    expect(receiver.received).toHaveLength(2);
    await pass(bench, DAY);
    expect(receiver.received).toHaveLength(2);
  });

  test('an endpoint that fails for five days is disabled, and enabled again by an update', async () => {
    const receiver = await startReceiver();
    receiver.answer = { status: 500 };
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    const [endpoint] = bench.sandbox.state.endpoints.list(bench.sandbox.teamId);
    for (let day = 0; day <= 5; day += 1) {
      expect(endpoint!.disabled).toBe(false);
      bench.sandbox.sendEvents(1);
      await pass(bench, 0);
      if (day < 5) for (let hour = 0; hour < 24; hour += 1) await pass(bench, HOUR);
    }
    expect(endpoint!.disabled).toBe(true);
    const before = receiver.received.length;
    bench.sandbox.sendEvents(1);
    await pass(bench, 0);
    expect(receiver.received).toHaveLength(before);
    receiver.answer = { status: 200 };
    const path = `/team/${bench.sandbox.teamId}/webhook/${endpoint!.id}`;
    expect((await bench.manage('PATCH', path, { disabled: false })).json['disabled']).toBe(false);
    bench.sandbox.sendEvents(1);
    await pass(bench, 0);
    expect(receiver.received.length).toBeGreaterThan(before);
  });
});

describe('webhook management', () => {
  test('create, read, update, delete; headers; event types by prefix', async () => {
    const receiver = await startReceiver();
    const bench = await Bench.start();
    const collection = `/team/${bench.sandbox.teamId}/webhook`;
    const fields = { url: receiver.url, event_types: ['daily.'], secret: SECRET };
    const { json: made } = await bench.manage('POST', collection, fields);
    const path = `${collection}/${String(made['id'])}`;
    expect(made).toMatchObject({
      url: receiver.url,
      event_types: ['daily.'],
      disabled: false,
      secret: SECRET,
    });
    const headers = { headers: { 'x-made-up': 'yes' } };
    expect((await bench.manage('PUT', `${path}/headers`, headers)).json).toEqual(headers);
    expect((await bench.manage('GET', `${path}/headers`)).json).toEqual(headers);
    expect((await bench.manage('PUT', `${path}/headers`, { headers: { 'svix-id': 'no' } })).status).toBe(422);
    bench.sandbox.sendEvents(9);
    await pass(bench, 0);
    expect(receiver.received.map(({ event }) => String(event['event_type'])).sort()).toEqual([
      'daily.data.meal.created',
      'daily.data.meal.updated',
      'daily.data.sleep.created',
    ]);
    expect(receiver.received[0]?.headers['x-made-up']).toBe('yes');
    await bench.manage('PATCH', path, { event_types: [] });
    expect((await bench.manage('GET', path)).json).toMatchObject({ event_types: [] });
    expect((await bench.manage('GET', collection)).json['data']).toHaveLength(1);
    expect((await bench.manage('DELETE', path)).json).toEqual({ success: true });
    expect((await bench.manage('GET', path)).status).toBe(404);
    expect((await bench.manage('POST', collection, { url: 'ftp://made.up' })).status).toBe(422);
    expect((await bench.manage('POST', collection, { url: receiver.url, secret: 'short' })).status).toBe(422);
  });

  test('a new secret: both sign for a day, then the new one only', async () => {
    const receiver = await startReceiver();
    const bench = await Bench.start({ webhooks: [{ url: receiver.url, secret: SECRET }] });
    const [endpoint] = bench.sandbox.state.endpoints.list(bench.sandbox.teamId);
    const path = `/team/${bench.sandbox.teamId}/webhook/${endpoint!.id}/secret`;
    const fresh = String((await bench.manage('POST', path, {})).json['secret']);
    expect((await bench.manage('GET', path)).json).toEqual({ secret: fresh });
    const newest = async (): Promise<Receiver['received'][number]> => {
      bench.sandbox.sendEvents(1);
      await pass(bench, 0);
      return receiver.received.at(-1)!;
    };
    const during = await newest();
    expect([fresh, SECRET].map((secret) => verifyStandardWebhooks(secret, 'svix', during))).toEqual([
      true,
      true,
    ]);
    bench.clock.advance(DAY);
    const after = await newest();
    expect([fresh, SECRET].map((secret) => verifyStandardWebhooks(secret, 'svix', after))).toEqual([
      true,
      false,
    ]);
  });
});
